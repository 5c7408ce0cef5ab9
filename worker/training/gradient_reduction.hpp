// Turns each worker's mean gradients into the mean over the global batch, with few large
// collectives.
//
// A worker with n of N samples contributes n/N of its mean; the sum over the world is the global
// mean, without a division afterwards, and with one worker (n = N) no gradient is changed at all.
// Small tensors are gathered in one row, whose end carries the step's extra numbers (votes,
// metrics); a large tensor is a row by itself and is reduced in place where that can be. Reducing
// each tensor by itself would pay the cost of a message for every bias. On the GPU, where a copy
// costs as much, each is a row by itself.
//
// Tensors of a row that lie one after the other in the program's memory need no gathering, and rows
// that do are reduced as one when all workers have them so.
//
// The extra numbers are summed in float64, whatever the gradients are: a vote must count every
// worker, and 16 bits count to 256. As long as the small tensors are few, they are summed in
// float64 as well, for the sake of one row; otherwise they have rows of their own types. Numbers of
// 16 bits are gathered, and on the host summed, as float32. Integers have no mean: those of the
// first rank that has samples in the step are handed to all.
//
// A gradient that the program reports as unset counts as zero. Whether anybody has set it is asked
// of the world only in a step in which somebody has not, with a small reduction of its own.
//
// When the noise of the gradients is wanted (noise_scale.hpp), it is measured on the way: that
// reads each gradient once more before it is weighted, and the mean once, and adds two extra
// numbers.
//
// A step:  begin_step   begin_piece, compute, accumulate for each call of compute   reduce
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "worker/collective/group.hpp"
#include "worker/core/noise_scale.hpp"
#include "worker/gpu/arithmetic.hpp"
#include "worker/state/state.hpp"
#include "worker/training/gradient_noise.hpp"
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
  // are still computed (buckets.hpp); 0: after compute, as at first.
  void use_buckets(std::size_t bytes);
  bool has_buckets() const { return !buckets_.empty(); }
  // A hash of which rows begin in memory where the one before ends.
  std::uint64_t joints() const;
  // Whether those are reduced as one; at first not. The joints must be equal on all ranks, and it
  // is said before the first bucket of a world.
  void join_rows(bool join) { join_rows_ = join; }

  void begin_step(const StepShare& share);
  // A call of compute begins, or reduce() follows if there is none; `step`: for ready().
  void begin_piece(const void* step);
  // The piece is the last one, for `samples` samples. With buckets the group is ours from here on,
  // until reduce() returns, or cancel().
  void begin_last_piece(collective::Group& group, const void* step, double samples);
  // Any thread: gradients are final in the present piece of that step. `data`, unless it is empty:
  // where their values are, until accumulate() and reduce() have returned; null: in the program's
  // memory. Nothing happens for a step that is over. False: there is no such gradient.
  bool ready(const void* step, std::span<const std::size_t> gradients,
             std::span<const void* const> data = {}) {
    return overlap_.ready(step, gradients, data);
  }
  bool ready(const void* step, std::size_t gradient) { return ready(step, {&gradient, 1}); }
  // The same for one that is zero, whatever its memory holds.
  bool unset(const void* step, std::size_t gradient) { return overlap_.unset(step, gradient); }
  // The number of a gradient; none has that name: no value.
  std::optional<std::size_t> number_of(std::string_view name) const;
  // Buckets may be under way.
  bool active() const { return overlap_.active(); }
  // The group was aborted, and the step does not happen. What the program enqueues on a GPU from
  // now on comes after what buckets have left there.
  void cancel();
  // Takes what this call of compute left in gradients and buffers: means over `samples` samples.
  void accumulate(double samples);
  // Collective. Afterwards gradients and buffers in the program's memory hold the mean over the
  // global batch, and `extras` (as many on all ranks) the sums over the world. Throws GroupBroken:
  // then gradients and buffers are garbage, the state is not.
  void reduce(collective::Group& group, std::span<double> extras);
  // After reduce: whether any worker has set that gradient in the step.
  std::span<const char> is_set() const { return is_set_; }
  // The measurement of the gradients last reduced, if begin_step asked for it; equal on all ranks.
  // A worker alone with one call of compute combines them with the gradients of the previous step,
  // of which it keeps a copy.
  const core::GradientSquares& squares() const { return noise_.squares(); }
  // The step last reduced does not count: the next step is not combined with its gradients.
  void discard() { noise_.discard(); }

 private:
  using Numbers = gpu::Arithmetic::Numbers;
  using DataType = collective::DataType;

  // A tensor in the program's memory.
  struct Place {
    void* data = nullptr;
    DataType type{};
    std::size_t count = 0;
    std::size_t at = 0;                     // first byte in its row's memory
    std::optional<std::size_t> gradient{};  // its number; none: a buffer

    Numbers own() const { return {data, type}; }
    const void* end() const { return static_cast<std::byte*>(data) + count * size_of(type); }
  };
  // Tensors that are reduced as one; `memory` has room for them, one after the other.
  struct Row {
    DataType gathered{};  // the type in memory
    DataType summed{};    // the type over the world; another one only for a tensor by itself
    std::vector<Place> places = {};
    std::size_t count = 0;
    bool plain = true;                    // all are of the type in which they are summed
    bool is_contiguous = true;            // each tensor begins where the one before ends
    bool follows_on = false;              // it begins where the row before ends, and may be joined
    std::size_t extras = 0;               // room for extra numbers at the end
    gpu::Arithmetic::Memory memory = {};  // null until a step needs it
  };
  using Rows = std::vector<Row>;
  using Sums = std::vector<collective::Group::Row>;
  class WaitingBuckets;

  // After the caller's: GradientSquares::local and ::pieces, and how many gradients are not set.
  static constexpr std::size_t own_extras = 3;

  std::function<void(std::size_t)> marks_of(const state::StateTable& table);
  void place_all();
  static void find_joints(Rows& rows);
  void add_to(Row& row, const state::Tensor& tensor, std::optional<std::size_t> gradient);
  Row row_of(const state::Tensor& tensor, std::optional<std::size_t> gradient);
  Rows rows_of(const core::Bucket& bucket);
  static bool goes_from_home(const Row& row);
  bool gathers(const Row& row) const;
  bool goes_by_tensor(const Row& row) const;
  static std::byte* numbers_in(const Row& row);
  void allocate(Row& row);
  void take(const Row& row, double weight, bool first);
  void bring_home();
  void hand_back(const Row& row);
  void clear(const Row& row);
  bool comes_back(const Row& row) const;
  void add_sums(const Rows& rows, int ranks, Sums& sums);
  void hand_back(const Rows& rows);
  void sum(collective::Group& group, std::span<const Rows* const> parts);
  void take_last_piece(const Rows& bucket);
  void reduce_waiting();
  void agree_on_set(collective::Group& group, double unset);
  std::size_t calls() const { return share_.calls; }

  const state::StateTable& table_;
  gpu::Arithmetic& arithmetic_;
  const std::size_t extras_max_;
  std::size_t bucket_bytes_ = 0;
  std::vector<core::Bucket> cut_;  // with bucket_bytes_
  std::vector<Rows> buckets_;      // the same, in memory
  Rows rows_;                      // reduced after compute; the extra numbers end the last
  bool join_rows_ = false;
  collective::Group* group_ = nullptr;  // of the last piece of a step
  double last_weight_ = 0;              // of the last call of compute
  std::vector<double> numbers_;         // the caller's extras, then our own
  std::vector<char> is_set_;            // each gradient: by this worker, after reduce by any
  StepShare share_;
  std::size_t done_ = 0;  // calls of compute so far

  std::map<std::string_view, std::size_t> numbers_of_;  // gradients, by name
  GradientNoise noise_;
  double local_ = 0;  // this worker's part of GradientSquares::local
  Overlap overlap_;   // the last member: its thread uses the others
};

}  // namespace elasticrun::worker::training
