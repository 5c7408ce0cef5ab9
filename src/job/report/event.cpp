// See event.hpp.
#include "job/report/event.hpp"

#include "base/line.hpp"
#include "job/report/json_object.hpp"

namespace elasticrun::job::report {
namespace {

// A text longer than the queue of the event file would be reported as a reader that is too slow.
constexpr std::size_t text_max = 64u << 10;

const auto& fitting(const auto& value) { return value; }
std::string_view fitting(const std::string& text) { return beginning(text, text_max); }

}  // namespace

std::string to_json(const Event& event, std::string_view time, std::string_view job) {
  JsonObject object;
  object.add("time", time).add("event", event.name);
  if (!job.empty()) object.add("job", job);
  for (const auto& [name, value] : event.fields)
    std::visit([&, &name = name](const auto& v) { object.add(name, fitting(v)); }, value);
  return object.text();
}

}  // namespace elasticrun::job::report
