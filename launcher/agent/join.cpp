// See join.hpp.
#include "launcher/agent/join.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>

#include "base/numbers.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/machine/machine.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent {
namespace {

// Parses "10.0.0.1:29400" or "[fd00::1]:29400". No names: a static program cannot use a name
// service.
bool read_place(std::string_view text, JoinOptions& options) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return false;
  std::string_view address = text.substr(0, colon);
  const bool brackets = address.starts_with('[') && address.ends_with(']');
  if (brackets) address = address.substr(1, address.size() - 2);
  boost::system::error_code wrong;
  const auto parsed = boost::asio::ip::make_address(std::string(address), wrong);
  const auto port = whole_number(text.substr(colon + 1));
  if (wrong || parsed.is_v6() != brackets || !port || *port < 1 || *port > 65535) return false;
  options.address = address;
  options.port = static_cast<std::uint16_t>(*port);
  return true;
}

std::string own_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 && name[0] != '\0' ? name : "unnamed";
}

Error usage(std::string_view what) {
  return Error{fmt::format(
      "{}; usage: elasticrun-agent --join ADDRESS:PORT [--key FILE] [--slots N] [--name NAME]",
      what)};
}

}  // namespace

Result<JoinOptions> parse_join(std::span<const char* const> arguments) {
  JoinOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view flag = arguments[i];
    const bool known = flag == "--join" || flag == "--key" || flag == "--slots" || flag == "--name";
    if (!known) return usage(fmt::format("'{}' is not known", flag));
    if (i + 1 == arguments.size() || !*arguments[i + 1])
      return usage(fmt::format("{} needs a value", flag));
    const std::string_view value = arguments[i + 1];
    if (flag == "--join" && !read_place(value, options))
      return usage(
          fmt::format("--join: '{}' is no numeric address with a port, as in "
                      "10.0.0.1:29400 or [fd00::1]:29400",
                      value));
    if (flag == "--key") options.key_file = value;
    if (flag == "--name") options.name = value;
    if (flag != "--slots") continue;
    const auto slots = whole_number(value);
    if (!slots || *slots < 1 || *slots > hosts::slots_per_host_max)
      return usage(fmt::format("--slots: '{}' is not a whole number from 1 to {}", value,
                               hosts::slots_per_host_max));
    options.slots = static_cast<int>(*slots);
  }
  if (options.port == 0) return usage("--join is missing");
  return options;
}

Result<std::string> read_key_file(const std::string& path) {
  const net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    return Error{fmt::format("--key: {}: {}", path, net::error_text(errno))};
  if (!S_ISREG(status.st_mode)) return Error{fmt::format("--key: {} is not a file", path)};
  if ((status.st_mode & 077) != 0)
    return Error{
        fmt::format("--key: others may read {}, and whoever knows the key can "
                    "join the job; chmod 600 it and use another key",
                    path)};
  std::string line(executors::agent_start_bytes_max, '\0');
  const ssize_t n = ::read(file.get(), line.data(), line.size());
  line.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  line.resize(std::min(line.find('\n'), line.size()));
  return ok(std::move(line));
}

Result<executors::AgentStart> join_start(const JoinOptions& options, std::string_view key_line,
                                         std::string_view version) {
  const std::string where = options.key_file.empty() ? "standard input" : options.key_file;
  const Result<executors::JobKey> key = executors::decode_job_key(key_line, where);
  if (!key) return key.error();
  if (key->version != version)
    return Error{fmt::format("{}: this agent has version {}, elasticrun has {}; use one version",
                             where, version, key->version)};
  executors::AgentStart start;
  start.job = key->job;
  start.identity = key->identity;
  start.key_hex = key->key_hex;
  start.host = no_host;
  start.name = options.name.empty() ? own_name() : options.name;
  start.addresses = {options.address};
  start.port = options.port;
  start.version = version;
  start.slots = options.slots > 0 ? options.slots : std::max(machine::this_machine().gpus, 1);
  return start;
}

void learn(executors::AgentStart& start, const wire::Welcome& welcome) {
  start.host = welcome.host;
  start.identity = welcome.identity;
  start.key_hex = welcome.key_hex;
  start.term = welcome.term;
  start.notice = welcome.notice;
  if (welcome.lease_ms <= 0 || welcome.heartbeat_ms <= 0) return;  // not usable
  start.lease_ms = welcome.lease_ms;
  start.heartbeat_ms = welcome.heartbeat_ms;
  start.orphan_grace_ms = welcome.orphan_grace_ms;
  start.standstill_ms = welcome.standstill_ms;
}

}  // namespace elasticrun::launcher::agent
