// The course of one simulated job: steps, decisions, staffing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "autoscaler/decision_text.hpp"
#include "simulate/what_if/simulated_job.hpp"

namespace elasticrun::simulate::what_if {

namespace {

Rng stream(std::uint64_t seed, std::uint64_t which) {
  return Rng(mix(mix(seed * 0x9e3779b97f4a7c15ULL) + which));
}

}  // namespace

SimulatedJob::SimulatedJob(const Curve& curve, const Conditions& conditions,
                           const Question& question, autoscaler::Autoscaler scaler)
    : curve_(curve),
      conditions_(conditions),
      question_(question),
      worths_(worths(curve, conditions, question)),
      scaler_(std::move(scaler)),
      shares_(question.limits.settle),
      noise_(stream(question.seed, 0)),
      starts_(stream(question.seed, 1)),
      losses_(stream(question.seed, 2)),
      revocations_(stream(question.seed, 3)),
      slowness_(stream(question.seed, 4)),
      fleet_(curve.hosts(), conditions.price) {}

Outcome SimulatedJob::run(int start) {
  scaler_.offers_changed(fleet_.offers(curve_.sizes()), now_);
  target_ = entered_ = start;
  for (const WorkerId worker : fleet_.start(start, now_)) fleet_.ready(worker, now_);
  fleet_.enter(*fleet_.proposal(start, now_));
  world();
  await(losses_, conditions_.failures_per_hour, &SimulatedJob::fail);
  await(revocations_, conditions_.revoked_per_hour, &SimulatedJob::revoke);
  await(slowness_, conditions_.slow_per_hour, &SimulatedJob::slow);
  while (goes_on()) {
    round();
    while (goes_on() && queue_.next_at() <= now_) queue_.run_next();
    if (goes_on()) watch();  // with the last host the last members may be gone
    if (!unsettled_ && goes_on() && now_ >= scaler_.wake_at()) decide();
    if (goes_on()) staff();
  }
  out_.done = !(left() > 0);
  out_.seconds = seconds(now_ - Time{});
  out_.met = met();
  out_.size = size();
  out_.global_batch = global_batch_;
  if (!good(entered_)) out_.found_s = out_.seconds;
  out_.reason = out_.size > 0 ? scaler_.decide(now_).reason : "state lost: the last host was lost";
  return std::move(out_);
}

void SimulatedJob::note(std::string text) {
  if (out_.notes.size() < most_notes) out_.notes.push_back({now_, std::move(text)});
}

void SimulatedJob::pass(Duration time) {
  now_ += time;
  const double s = seconds(time);
  out_.worker_seconds += s * fleet_.costs().workers;
  out_.weighed_seconds += s * std::pow(fleet_.costs().workers, question_.limits.min_gain);
  out_.cost += s / 3600 * fleet_.costs().per_hour;
}

void SimulatedJob::world() {
  generation_ = generation_.next();
  const auto members = typed_members();
  global_batch_ = scaler_.plan(size(), {}).global_batch;
  const auto weights =
      hosts_are_slow() ? shares_.weights(global_batch_, members) : std::vector<double>();
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  parts_.assign(members.size(), 1.0 / size());
  for (std::size_t i = 0; i < weights.size(); ++i) parts_[i] = weights[i] / all;
  stragglers_.world_changed(generation_, fleet_.members());
  scaler_.world_changed(generation_, size(), global_batch_, now_);
  if (hosts_are_slow() && shares_.world_changed(generation_, members, global_batch_, weights))
    scaler_.shares_changed();
  pace();
}

// Members step together, so the compute time of the slowest one is that of the step.
void SimulatedJob::pace() {
  const double rate = curve_.samples_per_s(size(), global_batch_);
  batch_ = static_cast<double>(global_batch_);
  // Without a batch, a step is taken to be as long as the time between two reports.
  if (!(batch_ > 0)) batch_ = rate * seconds(conditions_.report);
  const double known = curve_.compute_share(size(), global_batch_);
  const double step = batch_ / rate;
  compute_s_ = step * known;
  double slowest = 0;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    slowest = std::max(slowest, parts_[rank] * size() / fleet_.speed(fleet_.members()[rank]));
  step_s_ = step * (1 + (known > 0 ? known : 1) * (slowest - 1));
}

// A random factor for the mean time of `steps` log-normal steps, which is nearly log-normal again,
// with their variance divided by their number. By Box and Muller; one of their two values suffices.
double SimulatedJob::noise(double steps) {
  if (!(conditions_.noise > 0)) return 1;
  const double variance = std::log1p(conditions_.noise * conditions_.noise / steps);
  const double radius = std::sqrt(-2 * std::log(1 - noise_.uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * noise_.uniform());
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

double SimulatedJob::learned_of_a_sample() const {
  return curve_.worth_of_a_sample(global_batch_, learned_ / curve_.samples());
}

void SimulatedJob::round() {
  const double learned = learned_of_a_sample();
  double steps = std::max(1.0, std::ceil(seconds(conditions_.report) / step_s_));
  steps = std::min(steps, std::max(1.0, std::ceil(left() / learned / batch_)));
  const double took = steps * step_s_ * noise(steps);
  const double samples = std::min(steps * batch_, left() / learned);
  out_.samples += samples;
  learned_ += samples * learned;
  ++out_.rounds;
  pass(from_seconds(took));
  scaler_.progress(static_cast<std::int64_t>(std::max(0.0, left() / learned)));
  autoscaler::WorldSample sample{.generation = generation_, .size = size()};
  sample.steps = static_cast<std::int64_t>(steps);
  sample.samples_per_s = steps * batch_ / took;
  sample.batch = batch_;
  sample.step_time = from_seconds(took / steps);
  sample.compute_time = from_seconds(took / steps * compute_s_ / step_s_);
  noise_steps_ += steps;
  if (const auto scale = curve_.noise_scale(learned_ / curve_.samples()))
    sample.noise =
        Noise{.square = 1, .variance = *scale, .steps = static_cast<std::int64_t>(noise_steps_)};
  scaler_.observe(sample, now_);
  if (hosts_are_slow()) shares_.observe(sample);
  unwatched_ += steps;
}

// The advisor answers at once; after its first mistake it is not asked again.
autoscaler::Decision SimulatedJob::decided() {
  const autoscaler::Decision made = scaler_.decide(now_);
  const auto asked = scaler_.question();
  if (!asked || !out_.bad_advice.empty()) return made;
  if (const auto followed = scaler_.advised(question_.advisor(*asked)); !followed)
    out_.bad_advice = followed.error().text;
  return scaler_.decide(now_);
}

void SimulatedJob::decide() {
  const autoscaler::Decision made = decided();
  if (made.forecast) hear(*made.forecast, made.action == autoscaler::Action::stay);
  const bool rebatches = made.action == autoscaler::Action::rebatch;
  if (made.action == autoscaler::Action::stay || (made.target == target_ && !rebatches)) return;
  out_.moves.push_back({now_, size(), made.target, made.global_batch, made.reason});
  if (!rebatches) target_ = made.target;  // a new batch leaves missing workers wanted
  understaffed_ = true;
}

// Notes a changed forecast, unless it comes with a move, which is recorded with its reason.
void SimulatedJob::hear(const autoscaler::Forecast& forecast, bool alone) {
  if (alone && forecast.met != promised_) note(forecast.words);
  if (forecast.met)
    out_.refused_s.reset();
  else if (!out_.refused_s)
    out_.refused_s = seconds(now_ - Time{});
  promised_ = forecast.met;
}

std::optional<bool> SimulatedJob::met() const {
  if (question_.policy == "deadline")
    return out_.done && out_.seconds <= seconds(question_.aims.deadline);
  if (question_.policy == "budget") return out_.done && out_.cost <= question_.aims.budget;
  return {};
}

void SimulatedJob::staff() {
  if (!understaffed_ && now_ < staff_at_) return;
  understaffed_ = false;
  const int all = target_ + conditions_.spares;
  for (const WorkerId worker : fleet_.start(all, now_)) {
    const Duration takes = between(conditions_.start);
    if (takes <= Duration::zero())
      fleet_.ready(worker, now_);
    else
      queue_.at(now_ + takes, [this, worker] { ready(worker); });
  }
  fleet_.dismiss(all, now_);
  if (auto next = fleet_.proposal(target_, now_))
    change(std::move(*next));
  else if (!fleet_.starting() && scaler_.plan(size(), {}).global_batch != global_batch_)
    rebatch();
  settle(!fleet_.starting());
  staff_at_ = fleet_.slots().wake_at(now_);
}

// Tells the autoscaler when a change begins and ends: step times are not typical in between.
void SimulatedJob::settle(bool settled) {
  if (settled && unsettled_) scaler_.change_ended(now_);
  if (!settled && !unsettled_) scaler_.change_started(now_);
  unsettled_ = !settled;
}

Duration SimulatedJob::between(const Span& span) {
  const auto width = static_cast<double>((span.high - span.low).count());
  return span.low + Duration(std::llround(width * starts_.uniform()));
}

void SimulatedJob::ready(WorkerId worker) {
  fleet_.ready(worker, now_);
  understaffed_ = true;
}

void SimulatedJob::rebatch() {
  change(fleet_.members());
  out_.moved_s = seconds(now_ - Time{});
}

void SimulatedJob::change(std::vector<WorkerId> members) {
  settle(false);
  pass(conditions_.idle);
  const bool decided = target_ != entered_ && std::ssize(members) == target_;
  if (decided) {
    out_.moved_s = seconds(now_ - Time{});
    if (!good(entered_)) out_.found_s = out_.moved_s;
    entered_ = target_;
  }
  fleet_.enter(std::move(members));
  fleet_.dismiss(target_ + conditions_.spares, now_);
  world();
}

Result<Outcome> answer(const Curve& curve, const Conditions& conditions, const Question& question) {
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
  Curve roomy = curve;  // spares need slots as well
  roomy.add_hosts(sizes.back() + conditions.spares);
  Outcome outcome = SimulatedJob(roomy, conditions, question, std::move(*scaler)).run(start);
  if (!outcome.bad_advice.empty())
    return Error{fmt::format("--policy {}: {}", question.policy, outcome.bad_advice)};
  return outcome;
}

}  // namespace elasticrun::simulate::what_if
