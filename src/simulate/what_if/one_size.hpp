// The yardstick of a simulated job: one that has the right size from the beginning and keeps it,
// with nothing in its way.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "autoscaler/objective.hpp"
#include "simulate/what_if/curve.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::simulate::what_if {

// What a policy seeks; its aim is given where it needs one.
std::unique_ptr<autoscaler::Objective> objective_of(std::string_view policy,
                                                    const autoscaler::Aims& aims);
// What each size of the curve is worth to the policy, against the best one; of the whole job,
// without noise in step times, changes and mishaps.
std::map<int, double> worths(const Curve& curve, const Conditions& conditions,
                             const Question& question);
int best_size(const Curve& curve, const Conditions& conditions, const Question& question);
// What a job at any one size comes to, likewise; with the best batch for it where the policy
// chooses one.
Outcome at_one_size(const Curve& curve, const Conditions& conditions, const Question& question,
                    int size);

}  // namespace elasticrun::simulate::what_if
