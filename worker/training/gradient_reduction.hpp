// Turns each worker's mean gradients into the mean over the global batch, with few large
// collectives.
//
// A worker with n of N samples contributes n/N of its mean; the sum over the world is the global
// mean, without a division afterwards, and with one worker (n = N) nothing is touched at all. Small
// tensors are gathered in one buffer, whose end carries the step's extra numbers (votes, figures);
// a large one is reduced where it lies. Reducing each tensor by itself would pay a message's cost
// for every bias. On the GPU, where a copy costs as much, all are reduced where they lie.
//
// Where the noise of the gradients is wanted (noise_scale.hpp), it is measured on the way: one more
// look at each gradient before it is weighted and one at the mean, and two more extra numbers.
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
  // Of a sealed table, which outlives this. `extras_max` numbers can ride on a step. Allocates
  // what steps of one compute call need.
  Reduction(const state::StateTable& table, std::size_t extras_max);

  // compute_calls: of this worker in this step, 0 when its share is empty. global_samples: of the
  // step over the world (> 0), equal on all ranks, as is `measured`: whether squares() is wanted.
  void begin_step(std::size_t compute_calls, double global_samples, bool measured = false);
  // Takes what this call of compute left in gradients and buffers: means over `samples`.
  void accumulate(double samples);
  // Collective. Afterwards gradients and buffers in the program's memory hold the mean over the
  // global batch, and `extras` (as many on all ranks) the sums over the world, rounded to the
  // gradients' type. Throws GroupBroken: then gradients and buffers are garbage, the state is not.
  void reduce(collective::Group& group, std::span<double> extras);
  // Of the gradients last reduced, when they were measured; equal on all ranks. A worker alone with
  // one call takes them together with those of the step before, of which it keeps a copy.
  const core::GradientSquares& squares() const { return squares_; }
  // The step last reduced does not count: what it left is not what the next one follows.
  void discard() { previous_samples_ = 0; }

 private:
  struct Place {
    void* data = nullptr;  // the program's
    std::size_t count = 0;
    std::size_t at = 0;  // in its accumulator: the fused buffer, or the one for large tensors
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
  std::size_t small_count_ = 0, large_count_ = 0;  // elements
  gpu::Arithmetic::Memory fused_;                  // small tensors, then the extras
  gpu::Arithmetic::Memory large_;                  // from the first step of several calls on
  std::vector<collective::Group::Row> rows_;       // what is reduced: large tensors, fused buffer
  std::vector<double> numbers_;                    // extras and our own
  std::size_t calls_ = 0, done_ = 0;
  double global_samples_ = 0;

  std::vector<gpu::Arithmetic::Factors> gradients_;  // each with itself
  bool measured_ = false;
  double local_ = 0;  // this worker's part of GradientSquares::local
  core::GradientSquares squares_;
  gpu::Arithmetic::Memory previous_;  // gradients of the step before
  double previous_square_ = 0;
  double previous_samples_ = 0;  // 0: there are none
};

}  // namespace elasticrun::worker::training
