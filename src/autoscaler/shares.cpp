// Speeds of the members, the fair shares that follow from them, and when new shares are worth a
// change.
#include "autoscaler/shares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "autoscaler/robust.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

using Samples = std::vector<std::int64_t>;

// Reports and steps before a member counts as measured in this world.
constexpr std::size_t least_reports = 5;
constexpr std::int64_t least_steps = 10;
constexpr std::size_t most_reports = 32;  // reports kept per member
// New shares must shorten a step by at least this part.
constexpr double least_gain = 0.05;
// A member is slow only beyond this many standard errors: among many members that are checked again
// and again, one is often off by less.
constexpr double sure_errors = 3;
// A try after this many quiet pauses counts as the first of a row again.
constexpr int quiet_pauses = 4;
constexpr int most_pause_doublings = 6;  // of the pause
constexpr Duration shortest_pause = std::chrono::seconds(1);
constexpr std::size_t shares_told = 8;  // a longer list of shares is logged as a range
// A look in better() costs some microseconds per member, so in a large world looks are spaced: by
// look_distance for each member beyond looked_at_once.
constexpr std::int64_t looked_at_once = 256;
constexpr Duration look_distance = std::chrono::microseconds(200);

Samples equal_shares(std::int64_t global_batch, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  Samples samples(size, global_batch / count);
  for (std::int64_t rank = 0; rank < global_batch % count; ++rank)
    ++samples[static_cast<std::size_t>(rank)];
  return samples;
}

// Divides the batch into whole samples so that the slowest member takes as little time as possible:
// each gets what it can compute in the common time, and each remaining sample goes to the member
// that would finish one more first. Each gets at least one sample if there are enough: a member
// with none is not measured, and would count as slow for ever.
Samples fair_shares(std::int64_t global_batch, const std::vector<double>& costs) {
  double speed = 0;
  for (const double cost : costs) speed += 1 / cost;
  const std::int64_t least = global_batch >= std::ssize(costs) ? 1 : 0;
  Samples samples;
  for (const double cost : costs)
    samples.push_back(std::max(
        least, static_cast<std::int64_t>(static_cast<double>(global_batch) / (speed * cost))));
  std::int64_t left = global_batch - std::reduce(samples.begin(), samples.end());
  using Next = std::pair<double, std::size_t>;  // time to finish one more sample, rank
  std::priority_queue<Next, std::vector<Next>, std::greater<>> first;
  const auto ask = [&](std::size_t rank) {
    first.emplace(static_cast<double>(samples[rank] + 1) * costs[rank], rank);
  };
  for (std::size_t rank = 0; rank < costs.size(); ++rank) ask(rank);
  for (; left > 0; --left) {
    const std::size_t rank = first.top().second;
    first.pop();
    ++samples[rank];
    ask(rank);
  }
  for (; left < 0; ++left) --*std::ranges::max_element(samples);
  return samples;
}

double slowest(const std::vector<double>& costs, const Samples& samples) {
  double longest = 0;
  for (std::size_t rank = 0; rank < costs.size(); ++rank)
    longest = std::max(longest, costs[rank] * static_cast<double>(samples[rank]));
  return longest;
}

// Whether the reduction of the slowest member's time is large enough relative to the step time.
bool pays(double slowest_before, double slowest_then, double step) {
  return slowest_before - slowest_then > least_gain * step;
}

std::vector<double> as_weights(const Samples& samples, std::int64_t global_batch) {
  if (samples == equal_shares(global_batch, samples.size())) return {};
  return {samples.begin(), samples.end()};
}

std::string shares_text(const Samples& samples) {
  if (samples.size() <= shares_told) return fmt::format("{}", fmt::join(samples, " "));
  const auto [least, most] = std::ranges::minmax(samples);
  return fmt::format("{} to {}", least, most);
}

}  // namespace

Shares::Shares(Duration pause) : least_pause_(std::max(pause, shortest_pause)) {}

bool Shares::world_changed(Generation generation, std::vector<Member> members,
                           std::int64_t global_batch, const std::vector<double>& weights) {
  ER_CHECK(weights.empty() || weights.size() == members.size());
  const bool same = members == members_;
  std::map<std::string, std::vector<double>> by_type;
  IdMap<WorkerId, Pace> kept;
  for (const Member& member : members_) {
    const double cost = own_cost(member);
    if (cost <= 0) continue;
    kept[member.worker].known = cost;
    by_type[member.type].push_back(cost);
  }
  for (auto& [type, costs] : by_type) types_[type] = median(std::move(costs));
  paces_.clear();
  for (const Member& member : members) paces_[member.worker] = kept[member.worker];

  Samples samples;
  for (const double weight : weights) samples.push_back(std::llround(weight));
  if (weights.empty()) samples = equal_shares(global_batch, members.size());
  trial_.reset();
  if (same && wanted_ && wanted_->former && wanted_->samples == samples)
    trial_ = Wanted{samples_, wanted_->former};
  if (!same) {
    last_.reset();
    not_before_ = Time::min();
    look_at_ = Time::min();
  }
  wanted_.reset();
  news_ = false;
  generation_ = generation;
  members_ = std::move(members);
  global_batch_ = global_batch;
  return std::exchange(samples_, samples) != samples && same;
}

void Shares::observe(const WorkerSample& sample) {
  const auto found = paces_.find(sample.worker);
  if (found == paces_.end() || sample.generation != generation_ || sample.steps <= 0) return;
  Pace& pace = found->second;
  if (!std::exchange(pace.primed, true)) return;
  if (sample.samples <= 0 || sample.compute <= Duration::zero() || implausible(sample)) return;
  pace.reports.push_back(seconds(sample.compute) / static_cast<double>(sample.samples));
  if (pace.reports.size() > most_reports) pace.reports.pop_front();
  pace.steps += sample.steps;
}

void Shares::observe(const WorldSample& round) {
  if (round.generation != generation_) return;
  step_s_ = seconds(round.step_time);
  news_ = true;
}

// ---------------------------------------------------------------- what is known

// Seconds of compute per sample of this worker; 0: not known.
double Shares::own_cost(const Member& member) const {
  const auto found = paces_.find(member.worker);
  if (found == paces_.end()) return 0;
  const auto& reports = found->second.reports;
  return reports.size() < least_reports ? found->second.known
                                        : middle_mean({reports.begin(), reports.end()});
}

// The typical relative error of a member's measured cost: the median over the members, since a few
// reports of one member say too little about their own spread.
double Shares::error() const {
  std::vector<double> errors;
  for (const auto& [worker, pace] : paces_)
    if (pace.reports.size() >= least_reports) {
      const std::vector<double> reports(pace.reports.begin(), pace.reports.end());
      errors.push_back(relative_error(reports, middle_mean(reports)));
    }
  return errors.empty() ? 0 : median(std::move(errors));
}

// Seconds per sample for each member. A member that is not known gets the median of its type, or
// otherwise of all known members. Empty if none of the members is known.
std::vector<double> Shares::costs(const std::vector<Member>& members) const {
  std::map<std::string, std::vector<double>> by_type;
  std::vector<double> costs, known;
  for (const Member& member : members) {
    costs.push_back(own_cost(member));
    if (costs.back() <= 0) continue;
    known.push_back(costs.back());
    by_type[member.type].push_back(costs.back());
  }
  if (known.empty()) return {};
  const double typical = median(std::move(known));
  auto types = types_;
  for (auto& [type, of_type] : by_type) types[type] = median(std::move(of_type));
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (costs[rank] > 0) continue;
    const auto found = types.find(members[rank].type);
    costs[rank] = found == types.end() ? typical : found->second;
  }
  return costs;
}

bool Shares::measured() const {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Pace& pace = paces_.at(members_[rank].worker);
    if (samples_[rank] > 0 && (pace.reports.size() < least_reports || pace.steps < least_steps))
      return false;
  }
  return true;
}

// Seconds of a step beside the compute of its slowest member, which no shares can shorten.
double Shares::rest() const { return std::max(step_s_ - slowest(costs(members_), samples_), 0.0); }

std::vector<double> Shares::weights(std::int64_t global_batch,
                                    const std::vector<Member>& members) const {
  if (members == members_ && global_batch == global_batch_)
    return as_weights(wanted_ ? wanted_->samples : samples_, global_batch);
  const std::vector<double> costs = this->costs(members);
  if (costs.empty() || global_batch <= 0) return {};
  const Samples fair = fair_shares(global_batch, costs);
  const double before = slowest(costs, equal_shares(global_batch, members.size()));
  if (!pays(before, slowest(costs, fair), before + rest())) return {};
  return as_weights(fair, global_batch);
}

// ---------------------------------------------------------------- other shares

Duration Shares::pause() const { return least_pause_ * (1 << tries_); }

std::string Shares::ask_for(Wanted wanted, const std::string& why, Time now) {
  const bool in_a_row = last_ && now < *last_ + quiet_pauses * pause();
  tries_ = in_a_row ? std::min(tries_ + 1, most_pause_doublings) : 0;
  last_ = now;
  not_before_ = now + pause();
  wanted_ = std::move(wanted);
  return fmt::format("shares by speed: {}; {}", shares_text(wanted_->samples), why);
}

std::optional<std::string> Shares::better(Time now) {
  if (now < look_at_ || !std::exchange(news_, false) || global_batch_ <= 0) return {};
  look_at_ = now + look_distance * std::max<std::int64_t>(std::ssize(members_) - looked_at_once, 0);
  if (!measured()) return {};
  const std::vector<double> costs = this->costs(members_);
  const double present = slowest(costs, samples_);
  if (const auto trial = std::exchange(trial_, std::nullopt); trial && present >= *trial->former)
    return ask_for({trial->samples, std::nullopt},
                   fmt::format("as before, when the slowest took {:.3g} ms a step, not {:.3g} ms",
                               1e3 * *trial->former, 1e3 * present),
                   now);
  if (now < not_before_) return {};
  const Samples fair = fair_shares(global_batch_, costs);
  const double surely = present * std::max(1 - sure_errors * error(), 0.0);
  const double then = slowest(costs, fair);
  if (!pays(surely, then, present + rest())) return {};
  return ask_for({fair, present},
                 fmt::format("the slowest member's compute takes {:.3g} ms a step, then {:.3g} ms",
                             1e3 * present, 1e3 * then),
                 now);
}

}  // namespace elasticrun::autoscaler
