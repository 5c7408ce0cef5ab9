// How gradients are cut into buckets that are reduced while others are still computed, and which
// bucket may start. Pure.
//
// The cut follows from the registrations alone, from the last to the first, as a backward pass ends
// with them: so a newcomer cuts like the others. The first bucket is small, that the network begins
// early, and the last one, for no computing hides it: a quarter, if gradients are no larger. A
// bucket starts when all of it is ready and all before it have started; so the order is the same on
// every rank, whatever happens.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::training {

struct Bucket {
  std::vector<std::size_t> gradients;  // by their place in the order of registration
  collective::DataType type{};         // of all of them
  std::size_t count = 0;               // elements
};

// Buckets of about `bytes` (> 0); a gradient larger than that has one of its own. Empty gradients
// are in none.
std::vector<Bucket> cut_into_buckets(std::span<const state::Tensor> gradients, std::size_t bytes);

// Which gradients of a step are ready.
class ReadyMarks {
 public:
  ReadyMarks() = default;
  ReadyMarks(std::span<const Bucket> buckets, std::size_t gradients);

  // A step begins: nothing is ready, and no bucket has started.
  void begin();
  // Marks a gradient; false: it was marked before in this step.
  bool mark(std::size_t gradient);
  // The bucket that may start, if there is one: it counts as started.
  std::optional<std::size_t> start();
  bool may_start() const { return !all_started() && missing_[next_] == 0; }
  bool all_started() const { return next_ == missing_.size(); }
  std::size_t gradients() const { return marked_.size(); }

 private:
  std::vector<std::size_t> bucket_of_;  // of each gradient; a number too large: of none
  std::vector<std::size_t> sizes_;      // gradients of each bucket
  std::vector<std::size_t> missing_;    // those of them that are not ready
  std::vector<char> marked_;
  std::size_t next_ = 0;  // the bucket that starts next
};

}  // namespace elasticrun::worker::training
