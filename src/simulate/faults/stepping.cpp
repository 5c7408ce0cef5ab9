// See stepping.hpp.
#include "simulate/faults/stepping.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulate/faults/invariants.hpp"

namespace elasticrun::simulate::faults {
namespace {

// Shortest pause that counts: longer than any step of a run in which only newcomers are struck.
constexpr Duration pause_min = std::chrono::milliseconds(300);

}  // namespace

void Stepping::committed(Time now) {
  if (struck_at_ != never) {
    check_newcomers(now);
    if (now - last_commit_ >= pause_min) stood_ += now - last_commit_;
  }
  last_commit_ = now;
  if (healed()) quiet_since_ = now;
}

void Stepping::newcomer_struck(Time now) {
  if (only_newcomers_ && struck_at_ == never && last_commit_ != never && !healed())
    struck_at_ = now;
}

void Stepping::stops() {
  only_newcomers_ = false;
  struck_at_ = never;
}

void Stepping::look(bool could, const std::set<WorkerId>& outside, Time now) {
  if (!could && last_commit_ != never) last_commit_ = now;
  if (struck_at_ != never) check_newcomers(now);
  if (!healed()) return;
  if (!could) quiet_since_ = now;
  if (now - quiet_since_ > together_within)
    throw Violation("healthy workers come together",
                    fmt::format("no step for {}", to_text(now - quiet_since_)));
  std::erase_if(outside_since_, [&](const auto& one) { return !outside.contains(one.first); });
  for (const WorkerId worker : outside) {
    const Time since = outside_since_.try_emplace(worker, now).first->second;
    if (now - since > inside_within)
      throw Violation(
          "healthy workers come together",
          fmt::format("worker {} is outside for {}", worker.value, to_text(now - since)));
  }
}

void Stepping::check_newcomers(Time now) const {
  const Duration pause = now - last_commit_;
  const Duration all = stood_ + (pause >= pause_min ? pause : Duration::zero());
  const double share = seconds(all - newcomers_at_once) / std::max(seconds(now - struck_at_), 1e-3);
  if (pause > newcomers_at_once || share > newcomers_share)
    throw Violation("newcomers cost little",
                    fmt::format("no step for {}; {} of {} since the first trouble", to_text(pause),
                                to_text(all), to_text(now - struck_at_)));
}

}  // namespace elasticrun::simulate::faults
