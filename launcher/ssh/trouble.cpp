// See trouble.hpp.
#include "launcher/ssh/trouble.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string_view>

#include "launcher/executors/wrap.hpp"

namespace elasticrun::launcher::ssh {
namespace {

bool says(const Symptom& symptom, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (symptom.text.find(word) != std::string::npos) return true;
  return false;
}

std::string place_of(const SshConfig& config) {
  return fmt::format("{} port {}", config.hostname, config.port);
}

// The text of another program on one line: it may be long, or several lines.
std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 300;
  std::string line;
  while (!text.empty() && line.size() < most) {
    const std::string_view part = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (!part.empty()) line += (line.empty() ? "" : "; ") + std::string(part.substr(0, most));
  }
  return line.empty() ? "nothing more was said" : line;
}

Trouble late(const Symptom& symptom, const SshConfig& config, const std::string& time) {
  switch (symptom.stage) {
    case Stage::config:
      return {fmt::format("'ssh -G' did not end within {}; look for 'Match exec' in ~/.ssh/config",
                          time)};
    case Stage::lookup:
      return {fmt::format("no name server has answered for '{}' within {}; use an address",
                          config.hostname, time)};
    case Stage::connect:
      return {
          fmt::format("{} has not answered within {}; is the host up, and does a firewall drop "
                      "what comes?",
                      place_of(config), time)};
    case Stage::greeting:
    case Stage::host_key:
      return {
          fmt::format("{} takes connections and has not greeted for {}; the host or its sshd "
                      "hangs, or it is no sshd",
                      place_of(config), time)};
    case Stage::login:
      return {
          fmt::format("the login of {} took longer than {}; look at the host's user directory "
                      "(LDAP, NIS) and home",
                      config.user, time)};
    case Stage::run:
      return {
          fmt::format("the agent did not begin within {}; does what --wrap says start it?", time)};
    case Stage::shell:
      return {
          fmt::format("the login shell of {} did not obey within {}; it hangs in its start-up "
                      "files, or they wait for input",
                      config.user, time)};
    case Stage::copy:
      return {
          fmt::format("the copy has not moved for {}; the network or the disk of the host "
                      "hangs",
                      time)};
  }
  return {};
}

Trouble of_config(const Symptom& symptom) {
  if (says(symptom, {"not in PATH"}))
    return {"the program ssh was not found here; install openssh-client"};
  return {fmt::format("{}; correct ~/.ssh/config, or name another with --ssh-config",
                      in_quotes(symptom.text))};
}

Trouble of_lookup(const Symptom& symptom, const SshConfig& config) {
  if (symptom.error == EAI_AGAIN)
    return {
        fmt::format("no name server has answered for '{}'; use an address, or add it to "
                    "/etc/hosts",
                    config.hostname)};
  return {
      fmt::format("the name '{}' is not known; correct it, or give an address by HostName in "
                  "~/.ssh/config",
                  config.hostname)};
}

Trouble of_connect(const Symptom& symptom, const SshConfig& config) {
  const std::string place = place_of(config);
  switch (symptom.error) {
    case ECONNREFUSED:
      return {fmt::format("{} refuses connections; is sshd running there, on this port?", place),
              Retry::briefly};
    case EHOSTUNREACH:
    case ENETUNREACH:
      return {fmt::format("no route to {}; is the host up and its address right?", place)};
    case ETIMEDOUT:
      return {
          fmt::format("{} does not answer; is the host up, and does a firewall drop what "
                      "comes?",
                      place)};
    default:
      return {fmt::format("{}: {}; try 'ssh {}'", place, in_quotes(symptom.text), config.hostname)};
  }
}

// A full sshd closes the connection before its greeting; all that libssh sees is a socket that
// ends. The ssh of a jump host reports what its own server did.
Trouble of_greeting(const Symptom& symptom, const SshConfig& config) {
  const std::string place = place_of(config);
  const std::string said = in_quotes(symptom.text);
  if (says(symptom, {"No route to host", "Network is unreachable", "timed out"}))
    return {fmt::format("the proxy cannot reach {}: {}", place, said)};
  if (says(symptom, {"Connection refused", "open failed"}))
    return {fmt::format("{} refuses the connection of the proxy: {}", place, said), Retry::briefly};
  if (says(symptom, {"Permission denied", "Host key verification failed"}))
    return {fmt::format("the jump host does not let us in: {}; try it by ssh", said)};
  if (says(symptom, {"kex error", "no match for method"}))
    return {
        fmt::format("no common algorithm with {}: {}; see KexAlgorithms, Ciphers and "
                    "HostKeyAlgorithms in ssh_config(5)",
                    place, said)};
  if (says(symptom, {"MaxStartups", "disconnected", "reset", "Broken pipe", "closed"}))
    return {fmt::format("{} closed the connection before its greeting ({}); too many logins at "
                        "once for its sshd (raise MaxStartups), or it is no sshd",
                        place, said),
            Retry::throttled};
  return {fmt::format("{} cannot be spoken to: {}", place, said)};
}

Trouble of_host_key(const Symptom& symptom, const SshConfig& config) {
  const std::string name = config.host_key_alias.empty() ? config.hostname : config.host_key_alias;
  const std::string entry = config.port == 22 || !config.host_key_alias.empty()
                                ? name
                                : fmt::format("[{}]:{}", name, config.port);
  const std::string file =
      config.user_known_hosts.empty() ? "known_hosts" : config.user_known_hosts.front();
  switch (symptom.key) {
    case HostKey::changed:
    case HostKey::other_type:
      return {
          fmt::format("the key of {} is not the one in {}: it shows {}; another machine may "
                      "be in between. If the host was installed anew: ssh-keygen -R '{}' -f {}",
                      entry, file, symptom.fingerprint, entry, file)};
    case HostKey::unknown:
      return {
          fmt::format("{} is not in {}: it shows {}; check that, then log in once by ssh or "
                      "add the output of: ssh-keyscan -p {} {}",
                      entry, file, symptom.fingerprint, config.port, config.hostname)};
    default:
      return {fmt::format("{} cannot be used: {}", file, in_quotes(symptom.text))};
  }
}

Trouble of_login(const Symptom& symptom, const SshConfig& config) {
  const std::string who = config.user + " may not log in";
  const std::string said = in_quotes(symptom.text);
  if (!symptom.locked_key.empty())
    return {fmt::format("{}; the key {} has a passphrase: ssh-add it", who, symptom.locked_key)};
  if (symptom.login == Login::partial)
    return {fmt::format("{}; a key alone is not enough, the host wants {} besides", who, said)};
  if (symptom.login == Login::denied)
    return {
        fmt::format("{} (the host takes {}); is a public key of yours in its authorized_keys? "
                    "--identity and --user choose others",
                    who, said)};
  if (says(symptom, {"Too many authentication failures"}))
    return {
        fmt::format("{} ({}); name the right key with --identity, or set IdentitiesOnly in "
                    "~/.ssh/config",
                    who, said)};
  return {
      fmt::format("the host closed the connection during the login of {}: {}", config.user, said),
      Retry::briefly};
}

Trouble of_shell(const Symptom& symptom, const SshConfig& config) {
  const std::string said = in_quotes(symptom.text);
  if (symptom.foreign)
    return {fmt::format("the host {}; run an elasticrun that was built for it", symptom.text)};
  if (symptom.exit_code == 127) return {fmt::format("the host has no 'sh': {}", said)};
  if (symptom.exit_code < 0)
    return {fmt::format("the host closed the connection: {}", said), Retry::briefly};
  return {
      fmt::format("the login shell of {} ended ({}) instead of running a command: {}; try "
                  "'ssh {} true'",
                  config.user, symptom.exit_code, said, config.hostname)};
}

Trouble of_copy(const Symptom& symptom) {
  const char* advice = "make room for it, or set XDG_CACHE_HOME on the host";
  if (says(symptom, {"No space left", "quota exceeded"}))
    return {fmt::format("no room for the agent: {}; {}", in_quotes(symptom.text), advice)};
  if (says(symptom, {"noexec"}))
    return {
        fmt::format("no place where a program may run: {}; mount one without noexec, or set "
                    "XDG_CACHE_HOME on the host",
                    in_quotes(symptom.text))};
  return {
      fmt::format("the agent cannot be kept on the host: {}; {}", in_quotes(symptom.text), advice)};
}

Trouble of_run(const Symptom& symptom) {
  if (!symptom.text.empty()) return {executors::wrap_failure(symptom.text, symptom.exit_code)};
  return {fmt::format("the agent cannot be run there (exit code {}); its lines above say why",
                      symptom.exit_code)};
}

Trouble cause(const Symptom& symptom, const SshConfig& config, Duration deadline) {
  if (symptom.late) return late(symptom, config, elasticrun::to_text(deadline));
  switch (symptom.stage) {
    case Stage::config:
      return of_config(symptom);
    case Stage::lookup:
      return of_lookup(symptom, config);
    case Stage::connect:
      return of_connect(symptom, config);
    case Stage::greeting:
      return of_greeting(symptom, config);
    case Stage::host_key:
      return of_host_key(symptom, config);
    case Stage::login:
      return of_login(symptom, config);
    case Stage::shell:
      return of_shell(symptom, config);
    case Stage::copy:
      return of_copy(symptom);
    case Stage::run:
      return of_run(symptom);
  }
  return {};
}

}  // namespace

std::string to_text(Stage stage) {
  switch (stage) {
    case Stage::config:
      return "ssh configuration";
    case Stage::lookup:
      return "name";
    case Stage::connect:
      return "connect";
    case Stage::greeting:
      return "ssh greeting";
    case Stage::host_key:
      return "host key";
    case Stage::login:
      return "login";
    case Stage::shell:
      return "login shell";
    case Stage::copy:
      return "copy of the agent";
    case Stage::run:
      return "agent";
  }
  return {};
}

Trouble describe(const Symptom& symptom, const SshConfig& config, Duration deadline) {
  Trouble trouble = cause(symptom, config, deadline);
  trouble.text = fmt::format("{}: {}", to_text(symptom.stage), trouble.text);
  return trouble;
}

}  // namespace elasticrun::launcher::ssh
