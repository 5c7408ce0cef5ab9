// What a job reports about itself: one flat event, for the event file, the summary and tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace elasticrun::job::report {

using Value = std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>,
                           std::vector<std::int64_t>>;

struct Event {
  std::string name;                                   // see elasticrun-events(7)
  std::vector<std::pair<std::string, Value>> fields;  // in the order in which they are written
};

// One JSON object without a newline. `time` (RFC 3339, UTC) becomes its first member and `job`,
// unless empty, its third: the job's id tells apart several runs that write into one file.
std::string to_json(const Event& event, std::string_view time, std::string_view job = {});

}  // namespace elasticrun::job::report
