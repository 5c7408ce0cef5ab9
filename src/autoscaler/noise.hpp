// What the gradient noise says about a batch: how much each sample still contributes when a step
// has M of them.
//
// The workers measure the noise (from the squared gradient norms of a step); this file computes
// what follows for a batch. A step of M samples averages noise away, and beyond the noise scale
// little noise is left to average, although throughput alone takes every larger batch for a gain
// (Pollux, Qiao et al., OSDI 2021; McCandlish et al. 2018).
#pragma once

#include <cstdint>

#include "base/plan.hpp"

namespace elasticrun::autoscaler {

// Noise measured over fewer steps is not used: a single step may well see only noise, or none.
inline constexpr std::int64_t least_noise_steps = 100;

// The contribution of a sample in a step of M = `batch` samples, relative to one in a step of
// M0 = `base_batch`: (phi + M0) / (phi + M).
double efficiency(double noise_scale, double base_batch, double batch);

}  // namespace elasticrun::autoscaler
