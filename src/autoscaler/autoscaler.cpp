// What all policies have in common, and the table of their names.
#include "autoscaler/autoscaler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "autoscaler/fit.hpp"
#include "autoscaler/fixed.hpp"
#include "autoscaler/throughput.hpp"
#include "autoscaler/walk.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

using Make = std::unique_ptr<Policy> (*)(const Options&);

constexpr std::array<std::pair<std::string_view, Make>, 4> known_policies{{
    {"fixed",
     [](const Options& options) -> std::unique_ptr<Policy> {
       return std::make_unique<Fixed>(options.target);
     }},
    {"throughput",
     [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<Throughput>(); }},
    {"throughput-walk",
     [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<ThroughputWalk>(); }},
    {"fit", [](const Options&) -> std::unique_ptr<Policy> { return std::make_unique<Fit>(); }},
}};

// A size that could not be reached is tried again after 2, 4, 8, ... 64 settling times.
constexpr int most_doublings = 6;

}  // namespace

std::vector<std::string_view> Autoscaler::policies() {
  std::vector<std::string_view> names;
  for (const auto& [name, make] : known_policies) names.push_back(name);
  return names;
}

Result<Autoscaler> Autoscaler::make(Options options) {
  if (options.limits.min < 1 || options.limits.min > options.limits.max)
    return Error{fmt::format("the limits {}:{} hold no size; use 1 <= MIN <= MAX",
                             options.limits.min, options.limits.max)};
  for (const auto& [name, make_policy] : known_policies) {
    if (name != options.policy) continue;
    auto policy = make_policy(options);
    return Autoscaler(std::move(options), std::move(policy));
  }
  return Error{fmt::format("unknown policy '{}'; the known ones are {}", options.policy,
                           fmt::join(policies(), ", "))};
}

Autoscaler::Autoscaler(Options options, std::unique_ptr<Policy> policy)
    : policy_(std::move(policy)), rule_(options.batch), limits_(std::move(options.limits)) {
  sizes_changed(std::move(limits_.sizes));
}

void Autoscaler::sizes_changed(std::vector<int> sizes, int slots_per_host) {
  slots_per_host_ = slots_per_host;
  std::erase_if(sizes, [&](int size) { return size < limits_.min || size > limits_.max; });
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  limits_.sizes = std::move(sizes);
  dirty_ = true;
}

void Autoscaler::progress(std::int64_t steps_left) {
  ER_CHECK(steps_left >= 0);
  steps_left_ = steps_left;
}

void Autoscaler::change_started(Time now) {
  if (changing_) return;
  changing_ = true;
  wanted_ = decision_.action == Action::stay ? 0 : decision_.target;
  quiet_since_ = now;
  window_.change_started();
  dirty_ = true;
}

void Autoscaler::change_ended(Time now) {
  changing_ = false;
  quiet_since_ = now;
  window_.change_ended();
  if (wanted_ != 0 && wanted_ != size_) {
    Failed& failed = failed_[wanted_];
    failed.times = std::min(failed.times + 1, most_doublings);
    failed.until = now + pause_after(failed);
  }
  wanted_ = 0;
  dirty_ = true;
}

void Autoscaler::world_changed(Generation generation, int size, std::int64_t global_batch,
                               Time now) {
  ER_CHECK(size > 0 && global_batch >= 0);
  size_ = size;
  global_batch_ = global_batch;
  if (first_batch_ == 0) first_batch_ = global_batch;
  if (!began_) began_ = now;
  quiet_since_ = now;
  failed_.erase(size);
  window_.world_changed(generation, size, global_batch);
  dirty_ = true;
}

std::optional<WorldSample> Autoscaler::observe(const WorkerSample& sample, Time now) {
  auto round = window_.add(sample, now);
  if (round) dirty_ = true;
  return round;
}

Snapshot Autoscaler::snapshot(Time now) const {
  Snapshot seen;
  seen.size = size_;
  seen.change_under_way = changing_;
  seen.curve = window_.curve();
  for (const int size : limits_.sizes)
    seen.batches.push_back(
        {size, autoscaler::plan(rule_, size, {}).global_batch,
         slots_per_host_ > 0 ? (size + slots_per_host_ - 1) / slots_per_host_ : 0});
  seen.global_batch = global_batch_;
  seen.steps_left = steps_left_;
  seen.elapsed = began_ ? now - *began_ : Duration::zero();
  return seen;
}

const Decision& Autoscaler::decide(Time now) {
  if (now >= wake_at()) {
    decision_ = consider(now);
    ER_CHECK(!decision_.reason.empty());
    dirty_ = false;
  }
  return decision_;
}

Decision Autoscaler::consider(Time now) {
  if (size_ == 0) return decision(0, 0, "no world yet");
  if (changing_) return decision(size_, size_, "a change is under way");
  const Time settled = quiet_since_ + limits_.settle;
  if (now < settled) {
    Decision wait = decision(
        size_, size_,
        fmt::format("settling for {} after the last change", elasticrun::to_text(limits_.settle)));
    wait.again = settled;
    return wait;
  }
  if (limits_.sizes.empty())
    return decision(size_, size_,
                    fmt::format("no size between {} and {} can be had", limits_.min, limits_.max));
  const int nearest = std::clamp(size_, limits_.sizes.front(), limits_.sizes.back());
  if (nearest != size_) {
    const bool few = nearest > size_;
    return veto(
        decision(size_, nearest,
                 fmt::format("{} run but {} than {} cannot be, {} to it", size_,
                             few ? "fewer" : "more", nearest, few ? "growing" : "shrinking")),
        now);
  }
  return veto(policy_->decide(snapshot(now), limits_, now), now);
}

Duration Autoscaler::pause_after(const Failed& failed) const {
  return limits_.settle * (1 << failed.times);
}

// Holds back a move to a size that could not be reached lately, whoever wants it.
Decision Autoscaler::veto(Decision wanted, Time now) const {
  if (wanted.action == Action::stay) return wanted;
  ER_CHECK(std::binary_search(limits_.sizes.begin(), limits_.sizes.end(), wanted.target));
  const auto found = failed_.find(wanted.target);
  if (found == failed_.end() || now >= found->second.until) return wanted;
  Decision wait = decision(
      size_, size_,
      fmt::format("{} could not be reached, next try {} after the last ({})", wanted.target,
                  elasticrun::to_text(pause_after(found->second)), wanted.reason));
  wait.figures = std::move(wanted.figures);
  wait.again = found->second.until;
  return wait;
}

BatchPlan Autoscaler::plan(int size, std::vector<double> weights) const {
  BatchRule rule = rule_;
  if (rule.base_batch == 0) rule.base_batch = first_batch_;
  return autoscaler::plan(rule, size, std::move(weights));
}

}  // namespace elasticrun::autoscaler
