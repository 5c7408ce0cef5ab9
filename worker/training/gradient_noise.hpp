// The squares of gradients from which the noise is estimated (noise_scale.hpp).
#pragma once

#include <utility>
#include <vector>

#include "worker/core/noise_scale.hpp"
#include "worker/gpu/arithmetic.hpp"

namespace elasticrun::worker::training {

class GradientNoise {
 public:
  using Squares = std::vector<gpu::Arithmetic::Factors>;

  // Each gradient in the program's memory, paired with itself. The arithmetic outlives this.
  GradientNoise(gpu::Arithmetic& arithmetic, Squares gradients)
      : arithmetic_(arithmetic), gradients_(std::move(gradients)) {}

  // The square of what the program's memory holds.
  double square() { return arithmetic_.dot(gradients_); }
  // After the reduction of a step of `samples`, equal on all ranks. `local`: the sum over all calls
  // of compute, `pieces` of them, of their squares, each weighted with its share of the samples.
  void measure(int ranks, double local, double pieces, double samples);
  // Of the last call of measure. A worker alone with one call of compute combines its gradients
  // with those of the step before, of which it keeps a copy.
  const core::GradientSquares& squares() const { return squares_; }
  // The step last measured does not count: the next one is not combined with its gradients.
  void discard() { previous_samples_ = 0; }

 private:
  void combine_with_previous();

  gpu::Arithmetic& arithmetic_;
  const Squares gradients_;
  core::GradientSquares squares_;
  gpu::Arithmetic::Memory previous_;  // gradients of the step before
  double previous_square_ = 0;
  double previous_samples_ = 0;  // 0: previous_ holds no gradients
};

}  // namespace elasticrun::worker::training
