// How a world splits its global batch, and how noisy its gradients are: what the autoscaler decides
// from and what travels to the workers are the same.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <vector>

namespace elasticrun {

// Each rank computes the shares from it (worker/core/shares.hpp).
struct BatchPlan {
  std::int64_t global_batch = 0;  // samples per step over all workers; 0: the program decides
  std::int64_t micro_batch = 0;   // most samples one compute call may get; 0: no limit
  std::vector<double> weights;    // of the shares, per rank; empty: all equal
  // The rank that computes nothing, so that the state outlives a step that may kill the other
  // ranks, and that reports which rank computes which samples (StepSamples); -1: none.
  std::int32_t keeper = -1;
  double lr_factor = 1;         // by which the program should multiply its learning rate
  std::int64_t noise_base = 0;  // base batch for measuring the gradient noise; 0: not measured
  bool adascale = false;        // the factor follows that noise; lr_factor is its initial value
};
BOOST_DESCRIBE_STRUCT(BatchPlan, (),
                      (global_batch, micro_batch, weights, keeper, lr_factor, noise_base, adascale))

// The gradient noise as the workers measure it, averaged over steps (worker/core/noise_scale.hpp).
struct Noise {
  double square = 0;                 // |G|^2 of the true gradient G
  double variance = 0;               // trace of the covariance of one sample's gradient
  std::int64_t steps = 0;            // steps measured over; 0: nothing is known
  bool biased = false;               // a single worker's estimate, from pairs of successive steps
  double scale_invariant_steps = 0;  // training so far, in equivalent steps of the base batch

  // The noise scale phi, in samples: the mean gradient of phi samples is as large as its noise.
  // Infinite where only noise was seen.
  double scale() const { return variance / square; }
};
BOOST_DESCRIBE_STRUCT(Noise, (), (square, variance, steps, biased, scale_invariant_steps))

}  // namespace elasticrun
