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

#include "worker/collective/data_type.hpp"

namespace elasticrun::worker::core {

// A gradient that the program has registered.
struct Gradient {
  collective::DataType type{};
  std::size_t count = 0;  // elements

  std::size_t bytes() const { return count * size_of(type); }
};

struct Bucket {
  std::vector<std::size_t> gradients;  // by their place in the order of registration
  collective::DataType type{};         // of all of them
  std::size_t count = 0;               // elements
};

// Buckets of about `bytes` (> 0); a gradient larger than that has one of its own. Empty gradients
// are in none.
std::vector<Bucket> cut_into_buckets(std::span<const Gradient> gradients, std::size_t bytes);

// Which gradients of the step under way are ready.
class ReadyMarks {
 public:
  ReadyMarks() = default;
  ReadyMarks(std::span<const Bucket> buckets, std::size_t gradients);

  // A step begins, or another piece of it: nothing is ready, and no bucket has started. `step`, not
  // null, tells it from others.
  void begin(const void* step);
  // The step is over: no bucket starts until the next one begins.
  void end() { step_ = nullptr; }
  bool under_way() const { return step_ != nullptr; }
  // Marks a gradient of that step. False: it was marked before, or the step is over.
  bool mark(const void* step, std::size_t gradient);
  bool is_marked(std::size_t gradient) const { return marked_[gradient] != 0; }
  void mark_all();
  // The bucket that may start, if there is one: it counts as started.
  std::optional<std::size_t> start();
  bool all_started() const { return next_ == missing_.size(); }
  std::size_t gradients() const { return marked_.size(); }

 private:
  std::vector<std::size_t> bucket_of_;  // of each gradient; a number too large: of none
  std::vector<std::size_t> sizes_;      // gradients of each bucket
  std::vector<std::size_t> missing_;    // those of them that are not ready
  std::vector<char> marked_;
  const void* step_ = nullptr;  // null: no step is under way
  std::size_t next_ = 0;        // the bucket that starts next
};

}  // namespace elasticrun::worker::core
