// What went wrong on the way to a host, as one line for a person: at which stage, what, what to
// try.
//
// libssh, the kernel, a proxy and a remote shell each say it in their own words ("Socket error:
// disconnected" is a full MaxStartups); a person at a rack of machines needs the cause. The host's
// name is not in the line: whoever prints it puts it in front, and lines of many hosts that are
// alike can be folded. Pure.
#pragma once

#include <string>
#include <utility>

#include "base/time.hpp"
#include "launcher/ssh/config.hpp"

namespace elasticrun::launcher::ssh {

// In the order in which they are passed.
enum class Stage { config, lookup, connect, greeting, host_key, login, shell, copy, run };

enum class HostKey { known, unknown, changed, other_type, unreadable };

// Denied: no key fits. Partial: one fits, and more is asked for. Broken: the connection ended.
enum class Login { denied, partial, broken };

// What a driver has seen.
struct Symptom {
  Stage stage{};
  bool late = false;             // its deadline has passed
  int error = 0;                 // errno of a connect, EAI_* of a lookup
  int exit_code = -1;            // of a command; -1: none
  HostKey key = HostKey::known;  // at stage host_key
  Login login = Login::denied;   // at stage login
  bool foreign = false;          // at stage shell: a system the agent is not for
  std::string text = {};         // what libssh, ssh, the proxy or the shell has said; at run: wrap
  std::string fingerprint = {};  // of the key that was shown
  std::string locked_key = {};   // a private key file that needs a passphrase
};

// A function and not an aggregate with names at its co_return: g++ 12 destroys its strings twice
// there.
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
  briefly,  // a host that boots, or is down
  crowded,  // too many logins at once: it passes
};

struct Trouble {
  std::string text;
  Retry retry = Retry::never;
};

// `deadline`: of the stage, for those that were late.
Trouble describe(const Symptom& symptom, const SshConfig& config, Duration deadline);

// "login"
std::string to_text(Stage stage);

}  // namespace elasticrun::launcher::ssh
