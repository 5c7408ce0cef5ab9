// Turns each worker's mean gradients into the mean over the global batch, with few large
// collectives.
//
// A worker with n of N samples contributes n/N of its mean; the sum over the world is the global
// mean, without a division afterwards, and with one worker (n = N) no gradient is changed at all.
// Small tensors are gathered in one row, whose end carries the step's extra numbers (votes,
// metrics); a large tensor is reduced in place. Reducing each tensor by itself would pay the cost
// of a message for every bias. On the GPU, where a copy costs as much, all are reduced in place.
//
// The extra numbers are summed in float64, whatever the gradients are: a vote must count every
// worker, and 16 bits count to 256. As long as the small tensors are few, they are summed in
// float64 as well, for the sake of one row; otherwise they have rows of their own types. Numbers of
// 16 bits are gathered, and on the host summed, as float32. Integers have no mean: those of the
// first rank that has samples in the step are handed to all.
//
// When the noise of the gradients is wanted (noise_scale.hpp), it is measured on the way: that
// reads each gradient once more before it is weighted, and the mean once, and adds two extra
// numbers.
//
// A step:  begin_step(share)   accumulate(n) after each call of compute   reduce(group, extras)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/core/noise_scale.hpp"
#include "worker/gpu/arithmetic.hpp"
#include "worker/state/state.hpp"
#include "worker/training/overlap.hpp"

namespace elasticrun::worker::training {

// What a worker computes in a step.
struct StepShare {
  std::size_t calls = 0;      // of compute; 0: the share is empty
  double global_samples = 0;  // of the step over the world, > 0; equal on all ranks
  bool measured = false;      // whether squares() is wanted; equal on all ranks
  bool leads = true;          // of all ranks with samples it is the first
};

class Reduction {
 public:
  // `table` is sealed and outlives this. At most `extras_max` extra numbers can ride on a step.
  // Allocates what a step with one call of compute needs.
  Reduction(const state::StateTable& table, std::size_t extras_max);

  // From the next step on, gradients are reduced in buckets of about that many bytes, while others
  // are still computed (buckets.hpp); 0: after compute, as at first. On the GPU always after it.
  void use_buckets(std::size_t bytes);
  bool has_buckets() const { return overlap_.has_value(); }

  void begin_step(const StepShare& share);
  // With buckets: the last call of compute begins, for `samples` samples, or reduce follows. From
  // here on the group is ours until reduce() returns, or cancel(). `step`: for Overlap::ready.
  void begin_last_call(collective::Group& group, const void* step, double samples);
  // The group was aborted, and the step does not happen.
  void cancel();
  Overlap* overlap() { return overlap_ ? &*overlap_ : nullptr; }
  // Takes what this call of compute left in gradients and buffers: means over `samples` samples.
  void accumulate(double samples);
  // Collective. Afterwards gradients and buffers in the program's memory hold the mean over the
  // global batch, and `extras` (as many on all ranks) the sums over the world. Throws GroupBroken:
  // then gradients and buffers are garbage, the state is not.
  void reduce(collective::Group& group, std::span<double> extras);
  // The measurement of the gradients last reduced, if begin_step asked for it; equal on all ranks.
  // A worker alone with one call of compute combines them with the gradients of the previous step,
  // of which it keeps a copy.
  const core::GradientSquares& squares() const { return squares_; }
  // The step last reduced does not count: the next step is not combined with its gradients.
  void discard() { previous_samples_ = 0; }

 private:
  using Numbers = gpu::Arithmetic::Numbers;
  using DataType = collective::DataType;

  struct Place {
    void* data = nullptr;  // the program's memory
    DataType type{};
    std::size_t count = 0;
    DataType gathered{};  // the type in its accumulator: a row of fused_, or large_
    std::size_t at = 0;   // first byte there

    Numbers own() const { return {data, type}; }
  };
  void place_all();
  void place_in_buckets();
  void reduce_bucket(std::size_t index);
  void place_small(const std::vector<state::Tensor>& tensors);
  void place_large(const std::vector<state::Tensor>& tensors);
  Numbers gathered(const Place& place) const;
  bool in_place(const Place& place) const {
    return calls() == 1 && arithmetic_.summed_as(place.type) == place.type;
  }
  std::size_t calls() const { return share_.calls; }
  void take(Numbers to, const Place& place, double weight);
  void prepare_large();
  void prepare_fused(std::span<const double> extras);
  void measure(int ranks, double local, double pieces);
  void measure_with_previous();

  // The small tensors in one type, one after the other.
  struct Fused {
    DataType type{};
    std::size_t count = 0;
    gpu::Arithmetic::Memory memory;
  };

  struct Packed {
    std::vector<Place> places;
    DataType type{};  // in which it is summed
    std::size_t count = 0;
    gpu::Arithmetic::Memory memory;
  };

  const state::StateTable& table_;
  gpu::Arithmetic& arithmetic_;
  const std::size_t extras_max_;
  std::size_t bucket_bytes_ = 0;
  std::vector<Packed> packed_;          // buckets, in their order
  collective::Group* group_ = nullptr;  // of the step that the thread reduces
  double last_weight_ = 0;              // of the last call of compute
  std::vector<Place> small_places_, large_places_;
  Fused fused_[2]{{DataType::float32, 0, {}}, {DataType::float64, 0, {}}};  // extras end the last
  std::size_t large_bytes_ = 0;
  gpu::Arithmetic::Memory large_;             // null until a step needs it
  std::vector<collective::Group::Row> rows_;  // to reduce
  std::vector<double> numbers_;               // the caller's extras, then our own two
  StepShare share_;
  std::size_t done_ = 0;  // calls of compute so far

  std::vector<gpu::Arithmetic::Factors> gradients_;  // each gradient paired with itself
  double local_ = 0;                                 // this worker's part of GradientSquares::local
  core::GradientSquares squares_;
  gpu::Arithmetic::Memory previous_;  // gradients of the previous step
  double previous_square_ = 0;
  double previous_samples_ = 0;     // 0: previous_ holds no gradients
  std::optional<Overlap> overlap_;  // the last member: its thread uses the others
};

}  // namespace elasticrun::worker::training
