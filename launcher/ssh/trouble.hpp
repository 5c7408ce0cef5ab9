// Describes what went wrong on the way to a host as one line for the user: at which stage, what
// happened, and what to try.
//
// libssh, the kernel, a proxy and a remote shell each report it in their own words ("Socket error:
// disconnected" is a full MaxStartups); a user in front of a rack of machines needs the cause. The
// line does not contain the host's name: the code that prints it puts the name in front, and can
// fold equal lines of many hosts. Pure.
#pragma once

#include <string>
#include <utility>

#include "base/time.hpp"
#include "launcher/ssh/config.hpp"

namespace elasticrun::launcher::ssh {

// The stages of a conversation, in the order in which they are passed.
enum class Stage { config, lookup, connect, greeting, host_key, login, shell, copy, run };

enum class HostKey { known, unknown, changed, other_type, unreadable };

// denied: no key fits. partial: a key fits, but the host asks for more. broken: the connection
// ended.
enum class Login { denied, partial, broken };

// What the driver has observed.
struct Symptom {
  Stage stage{};
  bool late = false;             // its deadline has passed
  int error = 0;                 // errno of a connect, EAI_* of a lookup
  int exit_code = -1;            // of the command; -1: none
  HostKey key = HostKey::known;  // at stage host_key
  Login login = Login::denied;   // at stage login
  bool foreign = false;          // at stage shell: the agent is not built for the host's system
  std::string text = {};         // from libssh, ssh, the proxy or the shell; at stage run: the wrap
  std::string fingerprint = {};  // of the host key that was shown
  std::string locked_key = {};   // a private key file that needs a passphrase
};

// Makes a Symptom. A function and not an aggregate with designated initialisers at its co_return:
// g++ 12 destroys the strings of those twice.
inline Symptom symptom_at(Stage stage, std::string text, int exit_code = -1) {
  Symptom symptom;
  symptom.stage = stage;
  symptom.text = std::move(text);
  symptom.exit_code = exit_code;
  return symptom;
}

// Whether another attempt may help soon.
enum class Retry {
  never,
  briefly,    // the host is booting or down
  throttled,  // too many logins at once, which passes
};

struct Trouble {
  std::string text;
  Retry retry = Retry::never;
};

// `deadline`: the time limit of the stage, for symptoms that are late.
Trouble describe(const Symptom& symptom, const SshConfig& config, Duration deadline);

// The stage's name for the user, such as "login".
std::string to_text(Stage stage);

}  // namespace elasticrun::launcher::ssh
