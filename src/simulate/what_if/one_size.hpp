// The baseline for a simulated job: a job that has the right size from the beginning and keeps it,
// undisturbed.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "autoscaler/objective.hpp"
#include "simulate/what_if/curve.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::simulate::what_if {

// The objective of a policy; `aims` must hold the aim that it needs, if any.
std::unique_ptr<autoscaler::Objective> objective_of(std::string_view policy,
                                                    const autoscaler::Aims& aims);
// What each size of the curve is worth to the policy, relative to the best one (1), for the whole
// job, without noise in step times, changes or failures.
std::map<int, double> worths(const Curve& curve, const Conditions& conditions,
                             const Question& question);
int best_size(const Curve& curve, const Conditions& conditions, const Question& question);
// The outcome of a job that stays at one size, under the same assumptions; with the best batch for
// that size where the policy chooses the batch.
Outcome at_one_size(const Curve& curve, const Conditions& conditions, const Question& question,
                    int size);

}  // namespace elasticrun::simulate::what_if
