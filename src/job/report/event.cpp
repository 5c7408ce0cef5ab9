// See event.hpp.
#include "job/report/event.hpp"

#include "job/report/json_object.hpp"

namespace elasticrun::job::report {

std::string to_json(const Event& event, std::string_view time, std::string_view job) {
  JsonObject object;
  object.add("time", time).add("event", event.name);
  if (!job.empty()) object.add("job", job);
  for (const auto& [name, value] : event.fields)
    std::visit([&, &name = name](const auto& v) { object.add(name, v); }, value);
  return object.text();
}

}  // namespace elasticrun::job::report
