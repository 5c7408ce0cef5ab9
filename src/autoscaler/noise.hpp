// What the gradient noise says about a batch: how much each sample still contributes when a step
// has M of them.
//
// The workers measure the noise (from the squared gradient norms of a step); this file computes
// what follows for a batch. A step of M samples averages noise away, and beyond the noise scale
// little noise is left to average, although throughput alone takes every larger batch for a gain
// (Pollux, Qiao et al., OSDI 2021; McCandlish et al. 2018).
#pragma once

#include <cstdint>

namespace elasticrun::autoscaler {

// The gradient noise as the workers measure it, averaged over steps.
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

// Noise measured over fewer steps is not used: a single step may well see only noise, or none.
inline constexpr std::int64_t least_noise_steps = 100;

// The contribution of a sample in a step of M = `batch` samples, relative to one in a step of
// M0 = `base_batch`: (phi + M0) / (phi + M).
double efficiency(double noise_scale, double base_batch, double batch);

}  // namespace elasticrun::autoscaler
