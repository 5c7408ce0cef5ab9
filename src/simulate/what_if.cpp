// The course of one simulated job.
#include "simulate/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "autoscaler/stragglers.hpp"
#include "autoscaler/telling.hpp"
#include "base/rng.hpp"
#include "simulate/one_size.hpp"
#include "simulate/queue.hpp"
#include "simulate/site.hpp"

namespace elasticrun::simulate {

namespace {

Duration from_seconds(double s) { return Duration(std::llround(s * 1e9)); }

class Run {
 public:
  Run(const Curve& curve, const Conditions& conditions, const Question& question,
      autoscaler::Autoscaler scaler)
      : curve_(curve),
        conditions_(conditions),
        question_(question),
        worths_(worths(curve, conditions, question)),
        scaler_(std::move(scaler)),
        noise_(stream(question.seed, 0)),
        starts_(stream(question.seed, 1)),
        losses_(stream(question.seed, 2)),
        revocations_(stream(question.seed, 3)),
        slowness_(stream(question.seed, 4)),
        site_(curve.hosts(), conditions.price) {}

  Outcome run(int start) {
    scaler_.offers_changed(site_.offers(curve_.sizes()));
    target_ = entered_ = start;
    for (const WorkerId worker : site_.start(start, now_)) site_.ready(worker);
    site_.enter(*site_.proposal(start, now_));
    world();
    await(losses_, conditions_.failures_per_hour, &Run::fail);
    await(revocations_, conditions_.revoked_per_hour, &Run::revoke);
    await(slowness_, conditions_.slow_per_hour, &Run::slow);
    while (goes_on()) {
      round();
      while (goes_on() && queue_.next_at() <= now_) queue_.run_next();
      watch();
      if (!unsettled_ && goes_on() && now_ >= scaler_.wake_at()) decide();
      if (goes_on()) staff();
    }
    out_.done = !(left() > 0);
    out_.seconds = seconds(now_ - Time{});
    out_.met = met();
    out_.size = static_cast<int>(site_.members().size());
    if (!good(entered_)) out_.found_s = out_.seconds;
    out_.reason =
        out_.size > 0 ? scaler_.decide(now_).reason : "state lost: the last host was lost";
    return std::move(out_);
  }

 private:
  // Neighbouring seeds must not have neighbouring streams; and what chance each has is its own, so
  // that one more draw here does not move another there.
  static Rng stream(std::uint64_t seed, std::uint64_t which) {
    return Rng(mix(mix(seed * 0x9e3779b97f4a7c15ULL) + which));
  }

  bool good(int size) const { return worths_.at(size) >= 0.95; }
  double left() const { return curve_.samples() - out_.samples; }
  bool goes_on() const {
    return left() > 0 && now_ - Time{} < conditions_.limit && !site_.members().empty();
  }
  void note(std::string text) {
    if (out_.notes.size() < most_notes) out_.notes.push_back({now_, std::move(text)});
  }

  // ---------------------------------------------------------------- time and steps

  void pass(Duration time) {
    now_ += time;
    const double s = seconds(time);
    out_.worker_seconds += s * site_.payroll().workers;
    out_.weighed_seconds += s * std::pow(site_.payroll().workers, question_.limits.min_gain);
    out_.cost += s / 3600 * site_.payroll().per_hour;
  }

  // Members step together: the slowest one's compute is everybody's time.
  void world() {
    const int size = static_cast<int>(site_.members().size());
    generation_ = generation_.next();
    stragglers_.world_changed(generation_, site_.members());
    scaler_.world_changed(generation_, size, curve_.global_batch(size), now_);
    pace();
  }

  void pace() {
    const int size = static_cast<int>(site_.members().size());
    const double rate = curve_.samples_per_s(size);
    batch_ = static_cast<double>(curve_.global_batch(size));
    // Without a batch a step is a report's worth.
    if (!(batch_ > 0)) batch_ = rate * seconds(conditions_.report);
    const double known = curve_.compute_share(size);
    compute_s_ = batch_ / rate * known;
    double slowest = 1;
    for (const WorkerId member : site_.members()) slowest = std::min(slowest, site_.speed(member));
    step_s_ = batch_ / rate * (1 + (known > 0 ? known : 1) * (1 / slowest - 1));
  }

  // Of the mean of so many log-normal steps, which is nearly log-normal again, with their variance
  // over their number. Box and Muller; one of the two is enough.
  double noise(double steps) {
    if (!(conditions_.noise > 0)) return 1;
    const double variance = std::log1p(conditions_.noise * conditions_.noise / steps);
    const double radius = std::sqrt(-2 * std::log(1 - noise_.uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * noise_.uniform());
    return std::exp(std::sqrt(variance) * normal - variance / 2);
  }

  void round() {
    double steps = std::max(1.0, std::ceil(seconds(conditions_.report) / step_s_));
    steps = std::min(steps, std::max(1.0, std::ceil(left() / batch_)));
    const double took = steps * step_s_ * noise(steps);
    out_.samples += std::min(steps * batch_, left());
    ++out_.rounds;
    pass(from_seconds(took));
    scaler_.progress(static_cast<std::int64_t>(std::max(0.0, left())));
    autoscaler::WorldSample sample{.generation = generation_,
                                   .size = static_cast<int>(site_.members().size())};
    sample.steps = static_cast<std::int64_t>(steps);
    sample.samples_per_s = steps * batch_ / took;
    sample.batch = batch_;
    sample.step_time = from_seconds(took / steps);
    sample.compute_time = from_seconds(took / steps * compute_s_ / step_s_);
    scaler_.observe(sample, now_);
    unwatched_ += steps;
  }

  // ---------------------------------------------------------------- size and staff

  // The advisor answers at once; after its first mistake it is not asked again.
  autoscaler::Decision decided() {
    const autoscaler::Decision made = scaler_.decide(now_);
    const auto asked = scaler_.question();
    if (!asked || !out_.bad_advice.empty()) return made;
    if (const auto followed = scaler_.advised(question_.advisor(*asked)); !followed)
      out_.bad_advice = followed.error().text;
    return scaler_.decide(now_);
  }

  void decide() {
    const autoscaler::Decision made = decided();
    if (made.forecast) hear(*made.forecast, made.action == autoscaler::Action::stay);
    if (made.action == autoscaler::Action::stay || made.target == target_) return;
    out_.moves.push_back(
        {now_, static_cast<int>(site_.members().size()), made.target, made.reason});
    target_ = made.target;
    understaffed_ = true;
  }

  // What a move says in its reason needs no note.
  void hear(const autoscaler::Forecast& forecast, bool alone) {
    if (alone && forecast.met != promised_) note(forecast.words);
    if (forecast.met)
      out_.refused_s.reset();
    else if (!out_.refused_s)
      out_.refused_s = seconds(now_ - Time{});
    promised_ = forecast.met;
  }

  std::optional<bool> met() const {
    if (question_.policy == "deadline")
      return out_.done && out_.seconds <= seconds(question_.aims.deadline);
    if (question_.policy == "budget") return out_.done && out_.cost <= question_.aims.budget;
    return {};
  }

  void staff() {
    if (!understaffed_ && now_ < staff_at_) return;
    understaffed_ = false;
    const int all = target_ + conditions_.spares;
    for (const WorkerId worker : site_.start(all, now_)) {
      const Duration takes = between(conditions_.start);
      if (takes <= Duration::zero())
        site_.ready(worker);
      else
        queue_.at(now_ + takes, [this, worker] { ready(worker); });
    }
    site_.dismiss(all, now_);
    if (auto next = site_.proposal(target_, now_)) change(std::move(*next));
    settle(!site_.starting());
    staff_at_ = site_.pool().wake_at(now_);
  }

  // While workers start and groups form, steps are not what they would be.
  void settle(bool settled) {
    if (settled && unsettled_) scaler_.change_ended(now_);
    if (!settled && !unsettled_) scaler_.change_started(now_);
    unsettled_ = !settled;
  }

  Duration between(const Span& span) {
    const auto width = static_cast<double>((span.high - span.low).count());
    return span.low + Duration(std::llround(width * starts_.uniform()));
  }

  void ready(WorkerId worker) {
    site_.ready(worker);
    understaffed_ = true;
  }

  void change(std::vector<WorkerId> members) {
    settle(false);
    pass(conditions_.idle);
    const bool decided = target_ != entered_ && std::ssize(members) == target_;
    if (decided) {
      out_.moved_s = seconds(now_ - Time{});
      if (!good(entered_)) out_.found_s = out_.moved_s;
      entered_ = target_;
    }
    site_.enter(std::move(members));
    site_.dismiss(target_ + conditions_.spares, now_);
    world();
  }

  // ---------------------------------------------------------------- what befalls hosts

  static Duration exponential(double mean_s, double chance) {
    return from_seconds(std::min(-std::log(1 - chance) * mean_s, 1e9));
  }

  // Without memory, and over all hosts at once: which one it is, and what else is up to chance, is
  // drawn when it comes, whether that host is used or not.
  using Blow = void (Run::*)(int host, double chance);
  void await(Rng& rng, double per_hour, Blow blow) {
    if (!(per_hour > 0)) return;
    const double mean_s = 3600 / (per_hour * site_.hosts());
    queue_.after(exponential(mean_s, rng.uniform()), [this, &rng, per_hour, blow] {
      const auto host = rng.below(static_cast<std::uint64_t>(site_.hosts()));
      (this->*blow)(static_cast<int>(host), rng.uniform());
      await(rng, per_hour, blow);
    });
  }

  const std::string& name(int host) const {
    return curve_.hosts()[static_cast<std::size_t>(host)].name;
  }

  void fail(int host, double) {
    if (!site_.listed(host)) return;
    if (site_.has_workers(host)) ++out_.failures;
    go(host, Duration::zero(), "is lost");
  }

  void revoke(int host, double) {
    if (!site_.listed(host)) return;
    if (site_.has_workers(host)) ++out_.revoked;
    go(host, conditions_.notice, "is taken away");
  }

  // Who has notice is replaced, or done without, before.
  void go(int host, Duration notice, std::string_view how) {
    if (site_.has_workers(host)) note(fmt::format("{} {}", name(host), how));
    site_.list(host, false);
    understaffed_ = true;
    queue_.at(now_ + notice, [this, host] { gone(host); });
    queue_.at(now_ + std::max(notice, conditions_.new_host), [this, host] {
      site_.list(host, true);
      understaffed_ = true;
    });
  }

  void gone(int host) {
    site_.set_speed(host, 1);
    understaffed_ = true;
    if (site_.lose(host) == 0 || site_.members().empty()) return;
    settle(false);
    pass(conditions_.recovery);
    world();
  }

  void slow(int host, double chance) {
    if (!site_.listed(host) || site_.speed(host) < 1) return;
    if (site_.has_workers(host)) ++out_.slow_phases;
    site_.set_speed(host, conditions_.slow_speed);
    pace();
    queue_.at(now_ + exponential(seconds(conditions_.slow_time), chance), [this, host] {
      site_.set_speed(host, 1);
      pace();
    });
  }

  // Each member's own compute, which alone tells who is slow. It is drawn less often than rounds
  // are, for there are so many of them.
  void watch() {
    if (now_ < watch_at_) return;
    watch_at_ = now_ + 10 * conditions_.report;
    if (!(conditions_.slow_per_hour > 0) || conditions_.stragglers == job::StragglerAction::off)
      return;
    report_compute();
    std::map<std::pair<HostId, bool>, std::vector<autoscaler::Straggler>> found;
    for (const autoscaler::Straggler& one : stragglers_.confirmed(now_)) {
      const job::SlotId slot = site_.slot(one.worker);
      const bool replace = conditions_.stragglers == job::StragglerAction::replace &&
                           site_.pool().has_substitute(target_, now_);
      found[{slot.host, replace}].push_back(one);
      ++out_.stragglers;
      if (!replace) continue;
      ++out_.replaced;
      site_.pool().quarantine(slot, now_);
      understaffed_ = true;
    }
    for (const auto& [where, slow] : found)
      note(fmt::format("{} of {} at {:.2f} of the others' speed for {}: {}",
                       autoscaler::workers_text(static_cast<int>(slow.size())),
                       name(static_cast<int>(where.first.value)), slow.front().score,
                       elasticrun::to_text(slow.front().slow_for),
                       where.second ? "replaced" : "reported"));
  }

  void report_compute() {
    const double share = batch_ / static_cast<double>(site_.members().size());
    const double compute = compute_s_ > 0 ? compute_s_ : step_s_;
    for (const WorkerId member : site_.members()) {
      autoscaler::WorkerSample sample{.worker = member, .generation = generation_};
      sample.steps = static_cast<std::int64_t>(unwatched_);
      sample.samples = std::max<std::int64_t>(1, std::llround(unwatched_ * share));
      sample.compute = from_seconds(unwatched_ * compute / site_.speed(member) * noise(unwatched_));
      stragglers_.observe(sample, now_);
    }
    unwatched_ = 0;
  }

  const Curve& curve_;
  const Conditions& conditions_;
  const Question& question_;
  const std::map<int, double> worths_;
  autoscaler::Autoscaler scaler_;
  autoscaler::Stragglers stragglers_{autoscaler::StragglerRule{}};
  Rng noise_;
  Rng starts_;
  Rng losses_;
  Rng revocations_;
  Rng slowness_;
  Site site_;
  Queue queue_{Time{}};

  Time now_{};
  int target_ = 0;             // the size that is wanted
  int entered_ = 0;            // the last one that was wanted and came to be
  bool unsettled_ = false;     // as the autoscaler was last told
  bool understaffed_ = false;  // something has changed since staff() looked
  Time staff_at_ = never;      // when a slot comes out of its pause
  double step_s_ = 0;
  double compute_s_ = 0;  // of a worker that is not slow; 0: not known
  double batch_ = 0;
  double unwatched_ = 0;  // steps since the members last reported
  Time watch_at_{};
  Generation generation_;
  std::optional<bool> promised_;  // what the policy last said of its limit
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
  options.aims = question.aims;
  options.limits = question.limits;
  options.limits.min = sizes.front();
  options.limits.max = sizes.back();
  auto scaler = autoscaler::Autoscaler::make(std::move(options));
  if (!scaler) return scaler.error();
  Curve roomy = curve;  // spares need slots, too
  roomy.add_hosts(sizes.back() + conditions.spares);
  Outcome outcome = Run(roomy, conditions, question, std::move(*scaler)).run(start);
  if (!outcome.bad_advice.empty())
    return Error{fmt::format("--policy {}: {}", question.policy, outcome.bad_advice)};
  return outcome;
}

}  // namespace elasticrun::simulate
