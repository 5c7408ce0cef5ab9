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
// What is found is the same on all ranks, since it comes out of the same reduction, so it may set
// the learning rate; it is part of the progress and survives its worker.
#pragma once

#include <cstdint>

namespace elasticrun::worker::core {

// What one step says.
struct GradientSquares {
  double local = 0;    // as above
  double total = 0;    // as above
  double pieces = 0;   // c
  double samples = 0;  // N
  // Of two successive steps of one piece each, taken for one step of two: what the weights have
  // moved between them counts as noise.
  bool biased = false;
};

// Averages over steps, younger ones counting more: by a factor of 0.999 for each M0 samples, M0
// being the base batch, the one that the learning rate was tuned for.
struct NoiseScale {
  double square_sum = 0;
  double variance_sum = 0;
  double weight = 0;       // of both sums, below 1
  std::int64_t steps = 0;  // that went in; a step that says nothing does not
  bool biased = false;     // as above, of all of them; the two kinds are never mixed

  bool operator==(const NoiseScale&) const = default;

  void observe(const GradientSquares& squares, double base_batch);
  // |G|^2, and tr / M0; 0 before the first step.
  double square() const;
  double variance() const;
  // How many steps of the base batch a step of `scale` times as many samples is worth (AdaScale):
  // between 1 and that. 1 before the first step.
  double gain(double scale) const;
};

}  // namespace elasticrun::worker::core
