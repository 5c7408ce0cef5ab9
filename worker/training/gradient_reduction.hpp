// Turns each worker's mean gradients into the mean over the global batch, with few large
// collectives.
//
// A worker with n of N samples contributes n/N of its mean; the sum over the world is the global
// mean, without a division afterwards, and with one worker (n = N) no gradient is changed at all.
// Small tensors are gathered in one buffer, whose end carries the step's extra numbers (votes,
// metrics); a large tensor is reduced in place. Reducing each tensor by itself would pay the cost
// of a message for every bias. On the GPU, where a copy costs as much, all are reduced in place.
//
// When the noise of the gradients is wanted (noise_scale.hpp), it is measured on the way: that
// reads each gradient once more before it is weighted, and the mean once, and adds two extra
// numbers.
//
// A step:  begin_step(calls, N)   accumulate(n) after each call of compute   reduce(group, extras)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/core/noise_scale.hpp"
#include "worker/gpu/arithmetic.hpp"
#include "worker/state/state.hpp"

namespace elasticrun::worker::training {

class Reduction {
 public:
  // `table` is sealed and outlives this. At most `extras_max` extra numbers can ride on a step.
  // Allocates what a step with one call of compute needs.
  Reduction(const state::StateTable& table, std::size_t extras_max);

  // compute_calls: number of calls of compute on this worker in this step, 0 when its share is
  // empty. global_samples: number of samples of the step over the world (> 0). measured: whether
  // squares() is wanted. The last two are equal on all ranks.
  void begin_step(std::size_t compute_calls, double global_samples, bool measured = false);
  // Takes what this call of compute left in gradients and buffers: means over `samples` samples.
  void accumulate(double samples);
  // Collective. Afterwards gradients and buffers in the program's memory hold the mean over the
  // global batch, and `extras` (as many on all ranks) the sums over the world, rounded to the
  // gradients' type. Throws GroupBroken: then gradients and buffers are garbage, the state is not.
  void reduce(collective::Group& group, std::span<double> extras);
  // The measurement of the gradients last reduced, if begin_step asked for it; equal on all ranks.
  // A worker alone with one call of compute combines them with the gradients of the previous step,
  // of which it keeps a copy.
  const core::GradientSquares& squares() const { return squares_; }
  // The step last reduced does not count: the next step is not combined with its gradients.
  void discard() { previous_samples_ = 0; }

 private:
  struct Place {
    void* data = nullptr;  // the program's memory
    std::size_t count = 0;
    std::size_t at = 0;  // first element in its accumulator: fused_ or large_
  };
  gpu::Arithmetic::Memory allocate(std::size_t count);
  std::byte* at(const gpu::Arithmetic::Memory& memory, std::size_t element) const {
    return memory.get() + element * size_of(type_);
  }
  void take(void* to, const Place& place, double weight);
  void measure(int ranks, double local, double pieces);
  void measure_with_previous();

  gpu::Arithmetic& arithmetic_;
  const collective::DataType type_;
  const std::size_t extras_max_;
  std::vector<Place> small_places_, large_places_;
  std::size_t small_count_ = 0, large_count_ = 0;  // number of elements
  gpu::Arithmetic::Memory fused_;                  // small tensors, then the extra numbers
  gpu::Arithmetic::Memory large_;                  // null until the first step of several calls
  std::vector<collective::Group::Row> rows_;       // to reduce: large tensors, then fused_
  std::vector<double> numbers_;                    // the caller's extras, then our own two
  std::size_t calls_ = 0, done_ = 0;               // calls of compute in this step, and so far
  double global_samples_ = 0;

  std::vector<gpu::Arithmetic::Factors> gradients_;  // each gradient paired with itself
  bool measured_ = false;
  double local_ = 0;  // this worker's part of GradientSquares::local
  core::GradientSquares squares_;
  gpu::Arithmetic::Memory previous_;  // gradients of the previous step
  double previous_square_ = 0;
  double previous_samples_ = 0;  // 0: previous_ holds no gradients
};

}  // namespace elasticrun::worker::training
