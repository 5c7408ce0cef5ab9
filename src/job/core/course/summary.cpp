// See summary.hpp.
#include "job/core/course/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace elasticrun::job::course {

void Summary::count_time(std::size_t workers, Time now) {
  if (began_ == Time{}) began_ = counted_ = now;
  worker_s_ += seconds(now - counted_) * static_cast<double>(workers);
  counted_ = now;
}

void Summary::world(int size, StepId from, const std::string& why, Change change) {
  if (change == Change::replanned && worlds_ > 0) return;
  if (worlds_ == 0) first_ = from;
  if (worlds_++ > 0) ++(change == Change::planned ? planned_ : forced_);
  world_lines_.push_back({size, from, why});
  if (world_lines_.size() > world_lines_max) world_lines_.pop_front();
}

std::string Summary::steps_made() const {
  return counted(std::max<std::int64_t>(newest_.value - first_.value, 0), "step");
}

std::vector<std::string> Summary::story(const std::string& at_the_end) const {
  if (worlds_ < 2) return {};
  std::vector<std::string> lines{"what was done, and why:"};
  if (const auto left_out = worlds_ - static_cast<int>(world_lines_.size()); left_out > 0)
    lines.push_back(fmt::format("  ({} earlier worlds; --events FILE records all)", left_out));
  for (const WorldLine& one : world_lines_)
    lines.push_back(
        fmt::format("  step {}: {}: {}", one.from.value, counted(one.size, "worker"), one.why));
  if (!at_the_end.empty()) lines.push_back("  at the end: " + at_the_end);
  return lines;
}

std::string Summary::words(Time now) const {
  if (worlds_ == 0) return {};
  std::string sizes = worlds_ > static_cast<int>(world_lines_.size()) ? "..." : "";
  for (const WorldLine& one : world_lines_)
    sizes += fmt::format("{}{}", sizes.empty() ? "" : " ", one.size);
  return fmt::format("{} in {}, {}; sizes {} ({} planned, {} forced)", steps_made(),
                     to_text(now - began_), counted(std::llround(worker_s_), "worker second"),
                     sizes, planned_, forced_);
}

}  // namespace elasticrun::job::course
