// The course of one simulated job.
#include "simulate/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/rng.hpp"

namespace elasticrun::simulate {

namespace {

Duration from_seconds(double s) { return Duration(std::llround(s * 1e9)); }

class Run {
 public:
  Run(const Curve& curve, const Conditions& conditions, const Question& question,
      autoscaler::Autoscaler scaler)
      : curve_(curve),
        conditions_(conditions),
        min_gain_(question.limits.min_gain),
        advisor_(question.advisor),
        scaler_(std::move(scaler)),
        rng_(stream(question.seed)) {}

  Outcome run(int start) {
    target_ = entered_ = start;
    enter(start);
    while (left() > 0 && now_ - Time{} < conditions_.limit) {
      round();
      if (failure_ <= now_) fail();
      if (pending_ && *pending_ <= now_ && left() > 0) change();
      if (!pending_ && now_ >= scaler_.wake_at()) decide();
    }
    out_.done = !(left() > 0);
    out_.seconds = seconds(now_ - Time{});
    out_.cost = out_.worker_seconds / 3600 * conditions_.price;
    out_.size = size_;
    if (!good(entered_)) out_.found_s = out_.seconds;
    out_.reason = scaler_.decide(now_).reason;
    return std::move(out_);
  }

 private:
  // Neighbouring seeds must not have neighbouring streams.
  static std::uint64_t stream(std::uint64_t seed) { return mix(seed * 0x9e3779b97f4a7c15); }

  bool good(int size) const { return relative_worth(curve_, size, min_gain_) >= 0.95; }
  double left() const { return curve_.samples() - out_.samples; }

  void enter(int size) {
    size_ = size;
    rate_ = curve_.samples_per_s(size);
    batch_ = static_cast<double>(curve_.global_batch(size));
    // Without a batch a step is a report's worth.
    if (!(batch_ > 0)) batch_ = rate_ * seconds(conditions_.report);
    next_failure();
    generation_ = generation_.next();
    scaler_.world_changed(generation_, size, curve_.global_batch(size), now_);
  }

  void pass(Duration time) {
    now_ += time;
    const double s = seconds(time);
    const double paid = std::max(size_, pending_ ? target_ : 0);
    out_.worker_seconds += s * paid;
    out_.weighed_seconds += s * std::pow(paid, min_gain_);
  }

  // Box and Muller; one of the two is enough.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - rng_.uniform()));
    return radius * std::cos(2 * std::numbers::pi * rng_.uniform());
  }

  void round() {
    const double step = batch_ / rate_;
    double steps = std::max(1.0, std::ceil(seconds(conditions_.report) / step));
    const double last = std::ceil(left() / batch_);
    steps = std::min(steps, std::max(1.0, last));
    // The mean of log-normal steps is nearly log-normal again, with their variance over their
    // number.
    const double variance = std::log1p(conditions_.noise * conditions_.noise / steps);
    const double factor =
        conditions_.noise > 0 ? std::exp(std::sqrt(variance) * normal() - variance / 2) : 1;
    const double took = steps * step * factor;
    const double samples = std::min(steps * batch_, left());
    out_.samples += samples;
    ++out_.rounds;
    pass(from_seconds(took));
    scaler_.progress(static_cast<std::int64_t>(std::max(0.0, left())));
    autoscaler::WorldSample sample{.generation = generation_, .size = size_};
    sample.steps = static_cast<std::int64_t>(steps);
    sample.samples_per_s = steps * batch_ / took;
    sample.batch = batch_;
    sample.step_time = from_seconds(took / steps);
    sample.compute_time = from_seconds(took / steps * curve_.compute_share(size_));
    scaler_.observe(sample, now_);
  }

  // The advisor answers at once; after its first mistake it is not asked again.
  autoscaler::Decision decided() {
    const autoscaler::Decision made = scaler_.decide(now_);
    const auto asked = scaler_.question();
    if (!asked || !out_.bad_advice.empty()) return made;
    if (const auto followed = scaler_.advised(advisor_(*asked)); !followed)
      out_.bad_advice = followed.error().text;
    return scaler_.decide(now_);
  }

  void decide() {
    const autoscaler::Decision made = decided();
    if (made.action == autoscaler::Action::stay) return;
    out_.moves.push_back({now_, size_, made.target, made.reason});
    begin(made.target);
  }

  void begin(int target) {
    target_ = target;
    pending_ = now_ + (target > size_ ? conditions_.start : Duration::zero());
    scaler_.change_started(now_);
    if (pending_ <= now_) change();
  }

  void change() {
    pass(conditions_.idle);
    pending_.reset();
    const bool decided = target_ != entered_;
    if (decided) out_.moved_s = seconds(now_ - Time{});
    const bool was_good = good(entered_);
    entered_ = target_;
    if (decided && !was_good) out_.found_s = seconds(now_ - Time{});
    enter(target_);
    scaler_.change_ended(now_);
  }

  // A host dies with all its workers; the launcher puts another in its place, in the background.
  void fail() {
    ++out_.failures;
    failure_ = never;
    scaler_.change_started(now_);
    pass(conditions_.recovery);
    const int rest = size_ - curve_.slots_per_host();
    // The only host: another has to come before anybody trains on.
    if (rest <= 0) pass(conditions_.start);
    if (rest > 0) enter(rest);
    if (!pending_ || rest <= 0) pending_ = rest > 0 ? now_ + conditions_.start : now_;
  }

  // Without memory, so it may be drawn anew whenever the number of hosts is another.
  void next_failure() {
    if (!(conditions_.failures_per_hour > 0)) return;
    const double hosts = std::ceil(static_cast<double>(size_) / curve_.slots_per_host());
    const double hours = -std::log(1 - rng_.uniform()) / (conditions_.failures_per_hour * hosts);
    failure_ = now_ + from_seconds(std::min(hours * 3600, 1e9));
  }

  const Curve& curve_;
  const Conditions& conditions_;
  double min_gain_;
  const Advisor& advisor_;
  autoscaler::Autoscaler scaler_;
  Rng rng_;

  Time now_{};
  int size_ = 0;
  int target_ = 0;               // of the change under way; else the size that is wanted
  int entered_ = 0;              // by the last planned change
  std::optional<Time> pending_;  // a planned change: when everybody is ready
  Time failure_ = never;         // the next one
  double rate_ = 0;
  double batch_ = 0;
  Generation generation_;
  Outcome out_;
};

}  // namespace

Result<Outcome> what_if(const Curve& curve, const Conditions& conditions,
                        const Question& question) {
  const std::vector<int>& sizes = curve.sizes();
  const int start = question.start > 0 ? question.start : sizes.back();
  if (!std::ranges::binary_search(sizes, start))
    return Error{fmt::format("{} is none of the sizes of the curve ({} to {})", start,
                             sizes.front(), sizes.back())};
  autoscaler::Options options;
  options.policy = question.policy;
  options.target = start;
  options.batch = curve.batch();
  options.limits = question.limits;
  options.limits.min = sizes.front();
  options.limits.max = sizes.back();
  auto scaler = autoscaler::Autoscaler::make(std::move(options));
  if (!scaler) return scaler.error();
  const int slots = curve.slots_per_host();
  std::vector<autoscaler::Offer> offers;
  for (const int size : sizes)
    offers.push_back({size, (size + slots - 1) / slots, conditions.price * size, 0});
  scaler->offers_changed(std::move(offers));
  Outcome outcome = Run(curve, conditions, question, std::move(*scaler)).run(start);
  if (!outcome.bad_advice.empty())
    return Error{fmt::format("--policy {}: {}", question.policy, outcome.bad_advice)};
  return outcome;
}

double relative_worth(const Curve& curve, int size, double min_gain) {
  const auto value = [&](int k) { return autoscaler::worth(curve.samples_per_s(k), k, min_gain); };
  return value(size) / value(best_size(curve, min_gain));
}

int best_size(const Curve& curve, double min_gain) {
  return *std::ranges::max_element(curve.sizes(), {}, [&](int size) {
    return autoscaler::worth(curve.samples_per_s(size), size, min_gain);
  });
}

Outcome at_one_size(const Curve& curve, const Conditions& conditions, int size, double min_gain) {
  Outcome outcome;
  outcome.done = true;
  outcome.size = size;
  outcome.samples = curve.samples();
  outcome.seconds = curve.samples() / curve.samples_per_s(size);
  outcome.worker_seconds = outcome.seconds * size;
  outcome.weighed_seconds = outcome.seconds * std::pow(static_cast<double>(size), min_gain);
  outcome.cost = outcome.worker_seconds / 3600 * conditions.price;
  return outcome;
}

}  // namespace elasticrun::simulate
