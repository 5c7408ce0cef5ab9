// See poison.hpp.
#include "job/poison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace elasticrun::job {

void Poison::died(const std::string& who, Generation world) {
  if (attempts_ == 0 || world != counted_) ++attempts_;
  counted_ = world;
  dead_.push_back(who);
}

void Poison::world_formed(Step step) {
  // Steps are reported late: from where the next world begins is known for certain.
  if (suspected() && !from_) from_ = step;
  committed(step);
}

void Poison::committed(Step step) {
  if (from_ && step > *from_) *this = {};
  last_ = step;
}

std::string Poison::words() const {
  const std::string step = from_ ? fmt::format("step {}", from_->next().value)
                                 : fmt::format("a step after {}", last_.value);
  return fmt::format("{} has killed its workers {} times: {}{}", step, attempts_,
                     fmt::join(dead_, "; "), samples_.empty() ? "" : "; " + samples_);
}

}  // namespace elasticrun::job
