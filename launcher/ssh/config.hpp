// What OpenSSH would do for a host: which address, port, user, keys, jump host and known hosts it
// would use.
//
// The output of `ssh -G host` is read; answers.hpp decides for which hosts ssh is run. Not libssh's
// own parser of ~/.ssh/config: it lacks IdentitiesOnly, HostKeyAlias, tokens and Match as OpenSSH
// means them, and with it a HostName changes which later Host blocks apply. Users' files were
// written for OpenSSH.
//
// Everything here is pure: text in, a struct or one error out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::launcher::ssh {

// Settings from the command line and the host file; each beats the configuration file. Empty or 0:
// not set.
struct SshOverrides {
  std::string config_file;
  std::string user;
  std::string identity;
  std::string known_hosts;
  std::uint16_t port = 0;
};

// The user who runs elasticrun; the tokens of ssh_config(5) expand to these values.
struct Caller {
  std::string home;
  std::string user;
  std::string host;
};

struct SshConfig {
  std::string hostname;  // name or address to dial
  std::string user;
  std::string host_key_alias;  // the host's name in known_hosts; empty: hostname and port
  std::string address_family;  // any, inet, inet6
  std::string identity_agent;  // socket of the key agent; empty: SSH_AUTH_SOCK; "none": no agent
  std::string proxy_command;   // whole shell command, tokens replaced; empty: dial directly
  std::vector<std::string> identities;  // private key files, in the order in which they are tried
  std::vector<std::string> user_known_hosts;
  std::vector<std::string> global_known_hosts;
  std::string key_exchange;  // algorithms, as ssh -G prints them; those libssh lacks are left out
  std::string ciphers;
  std::string macs;
  std::string host_keys;
  Duration connect_timeout{};  // 0: not configured
  std::uint16_t port = 22;
  // Whether key files are tried before the keys of the key agent. The order matters because a
  // server ends a login after a few wrong keys.
  bool files_first = false;
  // Whether a host key not seen before is accepted and remembered. A changed key is never accepted,
  // whatever is configured.
  bool accept_new_keys = false;

  bool operator==(const SshConfig&) const = default;
};

// The arguments for ssh, without "ssh" itself.
std::vector<std::string> ssh_question(const std::string& host, const SshOverrides& overrides);
// Reads `answer`, the output of `ssh -G`.
Result<SshConfig> parse_ssh_answer(std::string_view answer, const std::string& host,
                                   const SshOverrides& overrides, const Caller& caller);

// The same answer with another HostName.
std::string with_hostname(std::string_view answer, std::string_view hostname);

}  // namespace elasticrun::launcher::ssh
