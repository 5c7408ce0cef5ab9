// See samples.hpp.
#include "autoscaler/samples.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autoscaler/robust.hpp"
#include "base/check.hpp"

namespace elasticrun::autoscaler {

namespace {

// Largest plausible values of one report. A step of a year would have been given up long before.
constexpr double most_steps = 1e12;
constexpr double most_samples = 1e15;
constexpr Duration most_time = std::chrono::hours(24 * 365);

// Once a worker has reported this often in one round, the round no longer waits for silent workers
// (if at least half of the members have reported).
constexpr std::int64_t patience = 3;

}  // namespace

bool implausible(const WorkerSample& sample) {
  return static_cast<double>(sample.steps) > most_steps ||
         static_cast<double>(sample.samples) > most_samples || sample.wall > most_time ||
         sample.compute > most_time;
}

void Window::world_changed(Generation generation, int size, std::int64_t global_batch) {
  ER_CHECK(size > 0 && global_batch >= 0);
  generation_ = generation;
  size_ = size;
  global_batch_ = global_batch;
  newest_ = no_state;
  Visit& visit = this->visit();
  visit.rates.clear();
  visit.wall_s = visit.compute_s = 0;
  const Measure before = visit.measure;
  visit.measure = Measure{.size = size,
                          .global_batch = global_batch,
                          .visits = before.visits + 1,
                          .shares = before.shares,
                          .all_steps = before.all_steps,
                          .all_samples_per_s = before.all_samples_per_s};
  begin();
}

void Window::change_started() { changing_ = true; }

void Window::change_ended() {
  changing_ = false;
  begin();
}

void Window::begin() {
  reports_.clear();
  reported_ = 0;
}

std::optional<WorldSample> Window::add(const WorkerSample& sample, Time now) {
  if (changing_ || size_ == 0 || sample.generation != generation_) return {};
  if (sample.steps <= 0 || sample.samples < 0) return {};
  if (sample.wall <= Duration::zero() || sample.compute < Duration::zero()) return {};
  if (implausible(sample)) return {};
  // The first report after a change covers the first step, which allocates, connects and warms up.
  const auto [found, first] = reports_.try_emplace(sample.worker);
  if (first) return {};
  Sum& sum = found->second;
  if (sum.reports++ == 0) ++reported_;
  sum.steps += static_cast<double>(sample.steps);
  sum.samples += static_cast<double>(sample.samples);
  sum.wall_ns += static_cast<double>(sample.wall.count());
  sum.compute_ns += static_cast<double>(sample.compute.count());
  // The member that completes a round may report an older step than others did.
  newest_ = std::max(newest_, sample.step);
  if (!round_is_whole(sum)) return {};
  return close_round(newest_, now);
}

bool Window::round_is_whole(const Sum& latest) const {
  return reported_ >= size_ || (latest.reports >= patience && 2 * reported_ >= size_);
}

std::optional<WorldSample> Window::close_round(StepId step, Time now) {
  std::vector<double> step_times;  // seconds
  std::vector<double> compute_times;
  std::vector<double> steps;
  double batch = 0;
  for (auto& [worker, sum] : reports_) {
    if (sum.reports == 0) continue;
    step_times.push_back(sum.wall_ns / 1e9 / sum.steps);
    compute_times.push_back(sum.compute_ns / 1e9 / sum.steps);
    steps.push_back(sum.steps);
    batch += sum.samples / sum.steps;
    sum = {};
  }
  const int reported = std::exchange(reported_, 0);
  if (reported < size_)
    batch = global_batch_ > 0 ? static_cast<double>(global_batch_) : batch * size_ / reported;
  if (!(batch > 0)) return {};

  WorldSample world{.generation = generation_, .step = step, .size = size_, .batch = batch};
  const double step_time = median(std::move(step_times));
  world.steps = std::llround(std::min(median(std::move(steps)), most_steps));
  world.samples_per_s = batch / step_time;
  world.step_time = Duration(std::llround(step_time * 1e9));
  const auto [least, most] = std::ranges::minmax(compute_times);
  world.least_compute = Duration(std::llround(least * 1e9));
  world.most_compute = Duration(std::llround(most * 1e9));
  world.compute_time = Duration(std::llround(median(std::move(compute_times)) * 1e9));
  if (world.step_time <= Duration::zero()) return {};  // steps of less than a nanosecond

  keep(world, now);
  return world;
}

bool Window::add(const WorldSample& round, Time now) {
  if (changing_ || size_ == 0 || round.generation != generation_) return false;
  if (round.steps <= 0 || !(round.samples_per_s > 0) || round.step_time <= Duration::zero())
    return false;
  if (reports_.try_emplace(WorkerId(0)).second) return false;
  keep(round, now);
  return true;
}

void Window::keep(const WorldSample& round, Time now) {
  Visit& visit = this->visit();
  visit.rates.push_back(round.samples_per_s);
  if (visit.rates.size() > capacity) visit.rates.pop_front();
  const std::vector<double> rates(visit.rates.begin(), visit.rates.end());
  const double wall = seconds(round.step_time) * static_cast<double>(round.steps);
  visit.wall_s += wall;
  visit.compute_s += seconds(round.compute_time) * static_cast<double>(round.steps);
  visit.all_wall_s += wall;
  visit.all_samples += round.samples_per_s * wall;
  Measure& measure = visit.measure;
  measure.samples_per_s = middle_mean(rates);
  measure.error = relative_error(rates, measure.samples_per_s);
  measure.compute_share = visit.compute_s / visit.wall_s;
  measure.steps += round.steps;
  ++measure.rounds;
  measure.at = now;
  measure.all_steps += round.steps;
  measure.all_samples_per_s = visit.all_samples / visit.all_wall_s;
}

std::vector<Measure> Window::curve() const {
  std::vector<Measure> curve;
  for (const auto& [place, visit] : visits_)
    if (visit.measure.rounds > 0) curve.push_back(visit.measure);
  return curve;
}

}  // namespace elasticrun::autoscaler
