// See agent_start.hpp. Walks over the described members here instead of using wire/codec.cpp: that
// codec handles only the messages of the wire, and this line is never sent as one of them.
#include "launcher/executors/agent_start.hpp"

#include <fmt/format.h>

#include <boost/describe/members.hpp>
#include <boost/json.hpp>
#include <boost/mp11/algorithm.hpp>
#include <type_traits>

namespace elasticrun::launcher::executors {
namespace {

namespace json = boost::json;

template <class T>
concept Number = std::is_integral_v<T>;

json::value to_json(const std::string& text) { return json::string(text); }
template <Number T>
json::value to_json(T number) {
  return number;
}
template <class Tag, class Rep>
json::value to_json(Id<Tag, Rep> id) {
  return id.value;
}
json::value to_json(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

// Each from_json returns whether the value has the right type and is in range.
bool from_json(const json::value& value, std::string& out) {
  if (!value.is_string()) return false;
  out = value.get_string();
  return true;
}
template <Number T>
bool from_json(const json::value& value, T& out) {
  json::error_code ec;
  const T number = value.to_number<T>(ec);
  if (!ec) out = number;
  return !ec;
}
template <class Tag, class Rep>
bool from_json(const json::value& value, Id<Tag, Rep>& out) {
  return from_json(value, out.value);
}
bool from_json(const json::value& value, std::vector<std::string>& out) {
  if (!value.is_array()) return false;
  for (const json::value& element : value.get_array())
    if (!from_json(element, out.emplace_back())) return false;
  return true;
}

template <class T, class F>
void for_each_member(F&& f) {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) { f(member.name, member.pointer); });
}

template <class T>
std::string line_of(const T& value) {
  json::object object;
  for_each_member<T>([&](const char* name, auto member) { object[name] = to_json(value.*member); });
  return json::serialize(object) + '\n';
}

// The name of a member that has the wrong type; empty when there is none.
template <class T>
std::string_view read_members(const json::object& object, T& out) {
  std::string_view wrong;
  for_each_member<T>([&](const char* name, auto member) {
    const json::value* found = object.if_contains(name);
    if (found && !from_json(*found, out.*member)) wrong = name;
  });
  return wrong;
}

json::value parsed(std::string_view line) {
  json::error_code ec;
  return json::parse(json::string_view(line.data(), line.size()), ec);  // null when not JSON
}

bool is_key(std::string_view hex) {
  return hex.size() == 64 && hex.find_first_not_of("0123456789abcdef") == hex.npos;
}

// The maximum length is TLS's limit for an identity.
bool is_identity(std::string_view name) { return !name.empty() && name.size() <= 128; }

const char* what_is_wrong(const AgentStart& start) {
  if (!is_identity(start.identity)) return "identity must have 1 to 128 characters";
  if (!is_key(start.key_hex)) return "key_hex must be 64 hexadecimal digits in lower case";
  if (start.port == 0 || (start.addresses.empty() && start.stream.empty()))
    return "addresses and port must be given";
  if (start.lease_ms <= 0 || start.heartbeat_ms <= 0 || start.orphan_grace_ms < 0)
    return "lease_ms and heartbeat_ms must be positive, orphan_grace_ms not negative";
  return nullptr;
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
  if (const auto wrong = read_members(value.get_object(), start); !wrong.empty())
    return Error{fmt::format("standard input: AgentStart.{} has the wrong type", wrong)};
  if (const char* text = what_is_wrong(start))
    return Error{fmt::format("standard input: AgentStart: {}", text)};
  return start;
}

Result<JobKey> decode_job_key(std::string_view line, std::string_view where) {
  const json::value value = parsed(line);
  JobKey key;
  if (!value.is_object() || !read_members(value.get_object(), key).empty() || key.job.empty() ||
      !is_identity(key.identity) || !is_key(key.key_hex))
    return Error{
        fmt::format("{}: not the key of a job; elasticrun writes it as one line of JSON", where)};
  return key;
}

}  // namespace elasticrun::launcher::executors
