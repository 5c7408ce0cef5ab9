// See agent_start.hpp.
#include "launcher/executors/agent_start.hpp"

#include <fmt/format.h>

#include "wire/described.hpp"

namespace elasticrun::launcher::executors {
namespace {

namespace json = boost::json;

json::value parsed(std::string_view line) {
  json::error_code ec;
  return json::parse(json::string_view(line.data(), line.size()), ec);  // null when not JSON
}

bool is_key(std::string_view hex) {
  return hex.size() == 64 && hex.find_first_not_of("0123456789abcdef") == hex.npos;
}

// The maximum length is TLS's limit for an identity.
bool is_identity(std::string_view name) { return !name.empty() && name.size() <= 128; }

template <class T>
std::string line_of(const T& value) {
  return json::serialize(wire::to_json(value)) + '\n';
}

Result<void> check(const AgentStart& start) {
  if (!is_identity(start.identity)) return Error{"identity must have 1 to 128 characters"};
  if (!is_key(start.key_hex)) return Error{"key_hex must be 64 hexadecimal digits in lower case"};
  if (start.port == 0 || (start.addresses.empty() && start.stream.empty()))
    return Error{"addresses and port must be given"};
  if (start.lease_ms <= 0 || start.heartbeat_ms <= 0)
    return Error{"lease_ms and heartbeat_ms must be positive"};
  if (start.orphan_grace_ms < 0 || start.standstill_ms < 0)
    return Error{"orphan_grace_ms and standstill_ms must not be negative"};
  return {};
}

}  // namespace

std::string encode(const AgentStart& start) { return line_of(start); }
std::string encode(const JobKey& key) { return line_of(key); }

Result<AgentStart> decode_agent_start(std::string_view line) {
  const json::value value = parsed(line);
  if (!value.is_object())
    return Error{
        "standard input: expected one line of JSON from elasticrun; an agent is started "
        "by it, not by hand"};
  AgentStart start;
  wire::Problem problem;
  wire::from_json(value, start, problem);
  if (problem)
    return Error{fmt::format("standard input: AgentStart{}: {}", problem.path, problem.text)};
  if (const auto valid = check(start); !valid)
    return Error{fmt::format("standard input: AgentStart: {}", valid.error().text)};
  return start;
}

Result<JobKey> decode_job_key(std::string_view line, std::string_view where) {
  JobKey key;
  wire::Problem problem;
  wire::from_json(parsed(line), key, problem);
  if (problem || key.job.empty() || !is_identity(key.identity) || !is_key(key.key_hex))
    return Error{
        fmt::format("{}: not the key of a job; elasticrun writes it as one line of JSON", where)};
  return key;
}

}  // namespace elasticrun::launcher::executors
