// Sums that need no virtual time.
#include "simulate/one_size.hpp"

#include <algorithm>
#include <cmath>

#include "simulate/site.hpp"

namespace elasticrun::simulate {

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
  job.offers = Site(curve.hosts(), conditions.price).offers(curve.sizes());
  const auto objective = objective_of(question.policy, question.aims);
  std::map<int, double> worths;
  double best = 0;
  for (const autoscaler::Offer& offer : job.offers) {
    const autoscaler::Prospect prospect{offer, curve.samples_per_s(offer.size)};
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

Outcome at_one_size(const Curve& curve, const Conditions& conditions, int size, double min_gain) {
  Outcome outcome;
  outcome.done = true;
  outcome.size = size;
  outcome.samples = curve.samples();
  outcome.seconds = curve.samples() / curve.samples_per_s(size);
  outcome.worker_seconds = outcome.seconds * size;
  outcome.weighed_seconds = outcome.seconds * std::pow(static_cast<double>(size), min_gain);
  const Site site(curve.hosts(), conditions.price);
  outcome.cost = outcome.seconds / 3600 * site.offers({size}).front().price;
  return outcome;
}

}  // namespace elasticrun::simulate
