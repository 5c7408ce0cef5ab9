// A worker's share of a step in calls of compute, as train() makes them.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/training/gradient_reduction.hpp"

namespace elasticrun::worker::testing {

// Begins a step of `global_samples`, and calls compute(i) for each call i, of calls[i] samples. An
// empty share has none.
template <class Compute>
void compute_share(training::Reduction& reduction, collective::Group& group, const void* step,
                   const std::vector<int>& calls, double global_samples, Compute&& compute) {
  reduction.begin_step({.calls = calls.size(), .global_samples = global_samples});
  if (calls.empty()) reduction.begin_last_piece(group, step, 0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i + 1 == calls.size())
      reduction.begin_last_piece(group, step, calls[i]);
    else
      reduction.begin_piece(step);
    compute(i);
    reduction.accumulate(calls[i]);
  }
}

}  // namespace elasticrun::worker::testing
