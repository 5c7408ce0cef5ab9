// What OpenSSH would do for a host: which address, port, user, keys, jump host, known hosts.
//
// `ssh -G host` is asked and its answer read, one run per host. Not libssh's own parser of
// ~/.ssh/config: it lacks IdentitiesOnly, HostKeyAlias, tokens and Match as OpenSSH means them, and
// a HostName changes which later Host blocks it applies. People's files were written for OpenSSH.
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

// What the command line and the host file say; each beats the configuration file. Empty or 0: not
// said.
struct SshOverrides {
  std::string config_file;
  std::string user;
  std::string identity;
  std::string known_hosts;
  std::uint16_t port = 0;
};

// Who runs elasticrun: what the tokens of ssh_config(5) stand for.
struct Caller {
  std::string home;
  std::string user;
  std::string host;
};

struct SshConfig {
  std::string hostname;  // name or address to dial
  std::string user;
  std::string host_key_alias;  // the host's name in known_hosts; empty: hostname, and the port
  std::string address_family;  // any, inet, inet6
  std::string identity_agent;  // socket of the key agent; empty: SSH_AUTH_SOCK; "none"
  std::string proxy_command;   // whole shell command, tokens replaced; empty: dial
  std::vector<std::string> identities;  // private key files, in the order in which they are tried
  std::vector<std::string> user_known_hosts;
  std::vector<std::string> global_known_hosts;
  std::string key_exchange;  // algorithms, as ssh -G prints them; those libssh lacks are left out
  std::string ciphers;
  std::string macs;
  std::string host_keys;
  Duration connect_timeout{};  // 0: not said
  std::uint16_t port = 22;
  // Keys of the files before those of the agent: a server ends a login after a few wrong keys.
  bool files_first = false;
  // A key not seen before is taken and remembered. A changed key never is, whatever is configured.
  bool accept_new_keys = false;

  bool operator==(const SshConfig&) const = default;
};

// The arguments after "ssh".
std::vector<std::string> ssh_question(const std::string& host, const SshOverrides& overrides);
// `answer` is what ssh printed.
Result<SshConfig> parse_ssh_answer(std::string_view answer, const std::string& host,
                                   const SshOverrides& overrides, const Caller& caller);

// The same answer, for a host that goes by another name.
std::string with_hostname(std::string_view answer, std::string_view hostname);

// One word of a shell.
std::string shell_quoted(std::string_view word);

}  // namespace elasticrun::launcher::ssh
