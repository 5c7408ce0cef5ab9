// Outcomes that can be computed without virtual time.
#include "simulate/what_if/one_size.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "simulate/what_if/fleet.hpp"

namespace elasticrun::simulate::what_if {

namespace {

// Seconds until the job is done at one size with one batch. The worth of a sample changes during
// the job, so the time is summed up over pieces of it.
double seconds_at(const Curve& curve, int size, std::int64_t batch) {
  constexpr int pieces = 100;
  double samples = 0;
  for (int i = 0; i < pieces; ++i)
    samples += curve.samples() / pieces / curve.worth_of_a_sample(batch, (i + 0.5) / pieces);
  return samples / curve.samples_per_s(size, batch);
}

// The global batch given by the rule, or, for a policy that chooses it, the fastest one.
std::int64_t batch_at(const Curve& curve, const Question& question, int size) {
  std::int64_t best = curve.global_batch(size);
  if (question.policy != "goodput") return best;
  const auto base = std::max<std::int64_t>(curve.batch().base_batch, size);
  for (double batch = static_cast<double>(best); std::llround(batch) >= base;
       batch /= std::numbers::sqrt2)
    if (seconds_at(curve, size, std::llround(batch)) < seconds_at(curve, size, best))
      best = std::llround(batch);
  return best;
}

}  // namespace

std::unique_ptr<autoscaler::Objective> objective_of(std::string_view policy,
                                                    const autoscaler::Aims& aims) {
  if (policy == "deadline") return autoscaler::deadline(aims.deadline);
  if (policy == "budget") return autoscaler::budget(aims.budget);
  if (policy == "utility") return autoscaler::utility(aims.utility);
  return autoscaler::scaling();
}

std::map<int, double> worths(const Curve& curve, const Conditions& conditions,
                             const Question& question) {
  autoscaler::Snapshot job;
  job.samples_left = std::llround(curve.samples());
  job.offers = Fleet(curve.hosts(), conditions.price).offers(curve.sizes());
  const auto objective = objective_of(question.policy, question.aims);
  std::map<int, double> worths;
  double best = 0;
  for (const autoscaler::Offer& offer : job.offers) {
    double rate = curve.samples_per_s(offer.size);
    // This policy seeks what is learned per second, in samples of the base batch.
    if (question.policy == "goodput")
      rate = curve.samples() / seconds_at(curve, offer.size, batch_at(curve, question, offer.size));
    const autoscaler::Prospect prospect{offer, rate};
    const double worth = objective->worth(prospect, job, question.limits);
    worths[offer.size] = worth;
    best = std::max(best, worth);
  }
  for (auto& [size, worth] : worths) worth /= best;
  return worths;
}

int best_size(const Curve& curve, const Conditions& conditions, const Question& question) {
  const auto all = worths(curve, conditions, question);
  return std::ranges::max_element(all, {}, [](const auto& one) { return one.second; })->first;
}

Outcome at_one_size(const Curve& curve, const Conditions& conditions, const Question& question,
                    int size) {
  Outcome outcome;
  outcome.done = true;
  outcome.size = size;
  outcome.samples = curve.samples();
  outcome.global_batch = batch_at(curve, question, size);
  outcome.seconds = seconds_at(curve, size, outcome.global_batch);
  outcome.worker_seconds = outcome.seconds * size;
  outcome.weighed_seconds =
      outcome.seconds * std::pow(static_cast<double>(size), question.limits.min_gain);
  const Fleet fleet(curve.hosts(), conditions.price);
  outcome.cost = outcome.seconds / 3600 * fleet.offers({size}).front().price;
  return outcome;
}

}  // namespace elasticrun::simulate::what_if
