// See config.hpp.
#include "launcher/ssh/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace elasticrun::launcher::ssh {
namespace {

using Tokens = std::map<char, std::string>;

// A token that is not in the table stays as it is: the file will not be found then, and its name
// shows why.
std::string expand(std::string_view text, const Tokens& tokens) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto token =
        text[i] == '%' && i + 1 < text.size() ? tokens.find(text[i + 1]) : tokens.end();
    if (token == tokens.end()) {
      result += text[i];
    } else {
      result += token->second;
      ++i;
    }
  }
  return result;
}

std::string expand_path(std::string_view path, const Tokens& tokens) {
  if (path.starts_with("~/")) return expand("%d" + std::string(path.substr(1)), tokens);
  return expand(path, tokens);
}

Tokens tokens_of(const SshConfig& config, const std::string& host, const Caller& caller) {
  const std::string key_name =
      config.host_key_alias.empty() ? config.hostname : config.host_key_alias;
  return {{'%', "%"},
          {'d', caller.home},
          {'h', config.hostname},
          {'k', key_name},
          {'l', caller.host},
          {'L', caller.host.substr(0, caller.host.find('.'))},
          {'n', host},
          {'p', std::to_string(config.port)},
          {'r', config.user},
          {'u', caller.user}};
}

// The command for jump hosts, as OpenSSH makes it: an ssh to the last jump host that goes on to the
// real host; the jump hosts before the last are passed on with -J. BatchMode, because no user is
// there to answer questions.
std::string jump_command(std::string_view jumps, const SshConfig& config,
                         const SshOverrides& overrides) {
  std::string command = "ssh -o BatchMode=yes";
  if (!overrides.config_file.empty()) command += " -F " + shell_quoted(overrides.config_file);
  const std::size_t comma = jumps.rfind(',');
  if (comma != std::string_view::npos) command += " -J " + shell_quoted(jumps.substr(0, comma));
  std::string last(comma == std::string_view::npos ? jumps : jumps.substr(comma + 1));
  if (!last.starts_with("ssh://")) last.insert(0, "ssh://");
  const std::string target = fmt::format("[{}]:{}", config.hostname, config.port);
  return fmt::format("{} -W {} {}", command, shell_quoted(target), shell_quoted(last));
}

struct Raw {
  std::multimap<std::string, std::string, std::less<>> values;

  // Empty where ssh says nothing or "none".
  std::string_view get(std::string_view key) const {
    const auto it = values.find(key);
    return it == values.end() || it->second == "none" ? std::string_view() : it->second;
  }
  bool yes(std::string_view key) const {
    const std::string_view value = get(key);
    return value == "yes" || value == "true";
  }
};

Raw read(std::string_view answer) {
  Raw raw;
  while (!answer.empty()) {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(line.size() + 1, answer.size()));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    raw.values.emplace(line.substr(0, blank), line.substr(blank + 1));
  }
  return raw;
}

}  // namespace

std::vector<std::string> ssh_question(const std::string& host, const SshOverrides& overrides) {
  std::vector<std::string> arguments = {"-G"};
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(flag);
    arguments.push_back(value);
  };
  add("-F", overrides.config_file);
  add("-l", overrides.user);
  add("-i", overrides.identity);
  if (overrides.port != 0) add("-p", std::to_string(overrides.port));
  if (!overrides.known_hosts.empty())
    add("-o", "UserKnownHostsFile=\"" + overrides.known_hosts + '"');
  arguments.emplace_back("--");
  arguments.push_back(host);
  return arguments;
}

std::string with_hostname(std::string_view answer, std::string_view hostname) {
  constexpr std::string_view key = "hostname ";
  std::string result;
  while (!answer.empty()) {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(line.size() + 1, answer.size()));
    if (line.starts_with(key))
      result.append(key).append(hostname);
    else
      result += line;
    result += '\n';
  }
  return result;
}

Result<SshConfig> parse_ssh_answer(std::string_view answer, const std::string& host,
                                   const SshOverrides& overrides, const Caller& caller) {
  const Raw raw = read(answer);
  SshConfig config;
  config.hostname = raw.get("hostname");
  config.user = raw.get("user");
  const auto port = whole_number(raw.get("port"));
  if (config.hostname.empty() || config.user.empty() || !port || *port < 1 || *port > 65535)
    return Error{
        fmt::format("'ssh -G {}' did not say hostname, user and port; run it by hand", host)};
  config.port = static_cast<std::uint16_t>(*port);
  config.host_key_alias = raw.get("hostkeyalias");
  config.address_family = raw.get("addressfamily");
  config.key_exchange = raw.get("kexalgorithms");
  config.ciphers = raw.get("ciphers");
  config.macs = raw.get("macs");
  config.host_keys = raw.get("hostkeyalgorithms");
  config.connect_timeout =
      std::chrono::seconds(whole_number(raw.get("connecttimeout")).value_or(0));
  config.files_first = raw.yes("identitiesonly") || !overrides.identity.empty();
  const std::string_view strict = raw.get("stricthostkeychecking");
  config.accept_new_keys =
      strict == "accept-new" || strict == "no" || strict == "off" || strict == "false";

  const Tokens tokens = tokens_of(config, host, caller);
  // "none" must reach the driver; "SSH_AUTH_SOCK" is the default anyway.
  const auto agent = raw.values.find("identityagent");
  if (agent != raw.values.end() && agent->second != "SSH_AUTH_SOCK")
    config.identity_agent = expand_path(agent->second, tokens);
  for (auto [it, end] = raw.values.equal_range("identityfile"); it != end; ++it)
    if (it->second != "none") config.identities.push_back(expand_path(it->second, tokens));
  for (const std::string_view file : words(raw.get("userknownhostsfile")))
    config.user_known_hosts.push_back(expand_path(file, tokens));
  for (const std::string_view file : words(raw.get("globalknownhostsfile")))
    config.global_known_hosts.push_back(expand_path(file, tokens));
  if (const std::string_view jumps = raw.get("proxyjump"); !jumps.empty())
    config.proxy_command = jump_command(jumps, config, overrides);
  else
    config.proxy_command = expand(raw.get("proxycommand"), tokens);
  return config;
}

}  // namespace elasticrun::launcher::ssh
