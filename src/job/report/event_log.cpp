// See event_log.hpp.
#include "job/report/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

namespace elasticrun::job::report {

namespace {

namespace json = boost::json;

std::optional<Value> value_of(const json::value& from) {
  if (from.is_bool()) return from.as_bool();
  if (from.is_int64()) return from.as_int64();
  if (from.is_number()) return from.to_number<double>();
  if (from.is_string()) return std::string(from.as_string());
  if (!from.is_array()) return {};
  const json::array& array = from.as_array();
  if (!array.empty() && array.front().is_int64()) {
    std::vector<std::int64_t> numbers;
    for (const json::value& number : array) {
      if (!number.is_int64()) return {};
      numbers.push_back(number.as_int64());
    }
    return numbers;
  }
  std::vector<std::string> items;
  for (const json::value& item : array) {
    if (!item.is_string()) return {};
    items.emplace_back(item.as_string());
  }
  return items;
}

std::optional<Event> event_of(std::string_view line) {
  boost::system::error_code error;
  const json::value parsed = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !parsed.is_object()) return {};
  Event event;
  for (const auto& [key, member] : parsed.as_object()) {
    auto value = value_of(member);
    const std::string name(key.data(), key.size());
    if (name == "event" && member.is_string())
      event.name = std::string(member.as_string());
    else if (value)
      event.fields.emplace_back(name, std::move(*value));
  }
  if (event.name.empty()) return {};
  return event;
}

template <class T>
const T* find(const Event& event, std::string_view field) {
  const auto found = std::ranges::find(event.fields, field, [](const auto& f) { return f.first; });
  return found == event.fields.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

Result<std::vector<Event>> read_events(std::string_view text, std::string_view file) {
  std::vector<Event> events;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    auto event = event_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (event)
      events.push_back(std::move(*event));
    else if (!text.empty())
      return Error{
          fmt::format("{}:{}: no event; is it what elasticrun --events wrote?", file, number)};
  }
  if (events.empty()) return Error{fmt::format("{}: no event in it", file)};
  return events;
}

std::vector<Run> runs_of(const std::vector<Event>& events) {
  std::vector<Run> runs;
  for (const Event& event : events) {
    const std::string job = text(event, "job");
    auto run = std::find_if(runs.rbegin(), runs.rend(), [&](const Run& r) { return r.job == job; });
    if (run == runs.rend() || (job.empty() && event.name == "job_started")) {
      runs.push_back({job, {}});
      run = runs.rbegin();
    }
    run->events.push_back(event);
  }
  return runs;
}

std::optional<double> number(const Event& event, std::string_view field) {
  if (const auto* whole = find<std::int64_t>(event, field)) return static_cast<double>(*whole);
  if (const auto* real = find<double>(event, field)) return *real;
  return {};
}

std::string text(const Event& event, std::string_view field) {
  const auto* found = find<std::string>(event, field);
  return found ? *found : std::string();
}

std::vector<std::string> list(const Event& event, std::string_view field) {
  const auto* found = find<std::vector<std::string>>(event, field);
  return found ? *found : std::vector<std::string>();
}

}  // namespace elasticrun::job::report
