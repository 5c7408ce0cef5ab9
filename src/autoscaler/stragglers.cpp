// See stragglers.hpp.
#include "autoscaler/stragglers.hpp"

#include <algorithm>
#include <cmath>

namespace elasticrun::autoscaler {

void Stragglers::world_changed(Generation generation, const std::vector<WorkerId>& members) {
  generation_ = generation;
  IdMap<WorkerId, Member> kept;
  for (const WorkerId worker : members) kept[worker] = members_[worker];
  members_ = std::move(kept);
  std::erase_if(slow_, [&](const auto& one) { return !members_.contains(one.second); });
  median_ = 0;
  since_median_ = 0;
}

// The median speed; for an even number of members the upper one of the middle two, so that of two
// workers the slower one is compared with the faster one. 0 until all have reported.
double Stragglers::median_speed() const {
  std::vector<double> speeds;
  for (const auto& [worker, member] : members_)
    if (member.speed) speeds.push_back(*member.speed);
  if (speeds.size() != members_.size()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::ranges::nth_element(speeds, middle);
  return *middle;
}

bool Stragglers::slow(const Member& member) const {
  return member.steps >= rule_.wait_steps && member.score < rule_.threshold;
}

void Stragglers::observe(const WorkerSample& sample, Time now) {
  const auto found = members_.find(sample.worker);
  if (found == members_.end() || sample.generation != generation_) return;
  if (sample.steps <= 0 || sample.samples <= 0 || sample.compute <= Duration::zero()) return;
  if (implausible(sample)) return;
  Member& member = found->second;
  member.speed = static_cast<double>(sample.samples) / seconds(sample.compute);
  member.steps += sample.steps;
  if (++since_median_ * medians_per_round >= members_.size()) {
    median_ = median_speed();
    since_median_ = 0;
  }
  if (median_ <= 0) return;
  // Smooths over all steps of the report at once, as if each had been reported by itself.
  const double old = std::pow(1 - rule_.smoothing, static_cast<double>(sample.steps));
  member.score = (1 - old) * *member.speed / median_ + old * member.score;
  judge(sample.worker, member, now);
}

void Stragglers::judge(WorkerId worker, Member& member, Time now) {
  if (!slow(member)) {
    if (member.slow_since != never) slow_.erase({member.slow_since + rule_.confirm, worker});
    member.slow_since = never;
  } else if (member.slow_since == never) {
    member.slow_since = now;
    slow_.emplace(now + rule_.confirm, worker);
  }
}

std::vector<Straggler> Stragglers::confirmed(Time now) {
  std::vector<Straggler> found;
  for (; !slow_.empty() && slow_.begin()->first <= now; slow_.erase(slow_.begin())) {
    const WorkerId worker = slow_.begin()->second;
    const Member& member = members_.at(worker);
    found.push_back({worker, member.score, now - member.slow_since});
  }
  return found;
}

Time Stragglers::wake_at() const { return slow_.empty() ? never : slow_.begin()->first; }

std::optional<double> Stragglers::score(WorkerId worker) const {
  const auto found = members_.find(worker);
  if (found == members_.end() || found->second.steps < rule_.wait_steps) return std::nullopt;
  return found->second.score;
}

}  // namespace elasticrun::autoscaler
