// What the noise of the gradients says about a batch: how much of a sample's worth is left when so
// many of them make one step.
//
// The workers measure the noise (a step's squared norms hold it); here is what follows from it for
// a size. A step of M samples averages noise away, and beyond the noise scale there is little left
// to average: throughput alone takes every larger batch for a gain (Pollux, Qiao et al., OSDI 2021;
// McCandlish et al. 2018).
#pragma once

#include <cstdint>

namespace elasticrun::autoscaler {

// As the workers know it, averaged over steps.
struct Noise {
  double square = 0;                 // |G|^2 of the true gradient G
  double variance = 0;               // tr, of the gradient of one sample
  std::int64_t steps = 0;            // measured over; 0: nothing is known
  bool biased = false;               // one worker alone: from pairs of successive steps
  double scale_invariant_steps = 0;  // how many steps of the base batch training is worth by now

  // phi, in samples: the gradient of so many is as large as its noise. Infinite where nothing but
  // noise was seen.
  double scale() const { return variance / square; }
};

// Fewer steps tell little: a single one may well see nothing but noise, or none.
inline constexpr std::int64_t least_noise_steps = 100;

// What a sample of a step of M is worth, against one of a step of M0: (phi + M0) / (phi + M).
double efficiency(double noise_scale, double base_batch, double batch);

}  // namespace elasticrun::autoscaler
