// See poison.hpp.
#include "job/core/workers/poison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace elasticrun::job::workers {

void Poison::died(const std::string& who, Generation world) {
  const bool again = suspected() && world != counted_;
  // A world that died before it was known to have formed began from the last step reported before.
  if (again && !from_) from_ = last_;
  if (again || !suspected()) ++attempts_;
  if (world != counted_) dead_before_ = dead_.size();
  counted_ = world;
  dead_.push_back(who);
}

void Poison::world_formed(StepId step) {
  committed(step);
  // Steps are reported late, but the step from which the next world begins is certain.
  if (suspected() && !from_) from_ = step;
  dead_before_ = dead_.size();
}

void Poison::committed(StepId step) {
  if (from_ && step > *from_) {
    std::vector<std::string> here(dead_.begin() + static_cast<std::ptrdiff_t>(dead_before_),
                                  dead_.end());
    *this = Poison(std::move(here), counted_);
  }
  last_ = step;
}

std::string Poison::words(bool may_be_between_epochs) const {
  return fmt::format("step {}{} has killed its workers {} times: {}{}",
                     from_.value_or(last_).next().value,
                     may_be_between_epochs ? ", or on_epoch before it," : "", attempts_,
                     fmt::join(dead_, "; "), samples_.empty() ? "" : "; " + samples_);
}

}  // namespace elasticrun::job::workers
