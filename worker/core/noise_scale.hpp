// How noisy the gradients are: the gradient noise scale, from squared norms that a step has anyway.
//
// The mean gradient g over n samples strays from the true one, G, by the samples' own spread, tr:
//     E|g|^2 = |G|^2 + tr / n.
// A step of N samples comes in c pieces (workers times calls of compute) of n_i samples each. Its
// reduced gradient is one equation, the pieces are another one when each counts by its samples,
//     total = |sum (n_i / N) g_i|^2     E total = |G|^2 +     tr / N
//     local =  sum (n_i / N) |g_i|^2    E local = |G|^2 + c * tr / N,
// whatever the n_i are. Two equations, two unknowns: McCandlish et al. 2018 with equal pieces, as
// AdaScale (Johnson et al., ICML 2020) and Pollux (Qiao et al., OSDI 2021) have it; mixed hosts
// need no other formula. Measuring single samples would be sharper, but no program has their
// gradients.
//
// The result is the same on all ranks, since it comes out of the same reduction, so it may set the
// learning rate; it is part of the progress and survives its worker.
#pragma once

#include <cstdint>

namespace elasticrun::worker::core {

// The measurement of one step.
struct GradientSquares {
  double local = 0;    // as above
  double total = 0;    // as above
  double pieces = 0;   // c
  double samples = 0;  // N
  // Two successive steps of one piece each were taken for one step of two pieces, so what the
  // weights have moved between them counts as noise.
  bool biased = false;
};

// Exponential averages over steps: the weight of a step falls by a factor of 0.999 with each M0
// samples that follow, M0 being the base batch, the one that the learning rate was tuned for.
struct NoiseScale {
  double square_sum = 0;
  double variance_sum = 0;
  double weight = 0;       // total weight in each sum, below 1
  std::int64_t steps = 0;  // number of steps in the averages; a step of one piece is left out
  bool biased = false;     // as above, for all these steps; the two kinds are never mixed

  bool operator==(const NoiseScale&) const = default;

  void observe(const GradientSquares& squares, double base_batch);
  // Estimates of |G|^2 and of tr / M0; 0 before the first step.
  double square() const;
  double variance() const;
  // The number of steps of the base batch that a step of `scale` times as many samples is worth
  // (AdaScale): between 1 and `scale`. 1 before the first step.
  double gain(double scale) const;
};

}  // namespace elasticrun::worker::core
