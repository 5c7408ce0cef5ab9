// Sums over a Gloo mesh that Gloo itself has not, in place: with few messages, for data so small
// that their number decides the cost; and between two ranks.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective {

// The controller finds hangs. Finite, so that Gloo does not overflow when it adds this to a clock.
constexpr std::chrono::milliseconds no_limit = std::chrono::hours(100);

// Writes the sum of the second and third row into the first; the last argument counts elements.
using Sum = void (*)(void*, const void*, const void*, std::size_t);
Sum sum_of(DataType type);  // float32 or float64

// The rows of a source one by one.
class RowFeed {
 public:
  explicit RowFeed(Group::RowSource& source) : source_(source) {}
  // The first row that was not taken; null: there are no more.
  const Group::Row* peek();
  Group::Row take();
  // The oldest row that was taken, and is not summed yet, is summed.
  void summed();

 private:
  Group::RowSource& source_;
  std::span<const Group::Row> rows_;   // those of the newest next() that were not taken
  std::deque<std::size_t> under_way_;  // of each next(): the number of rows that are not summed
};

class GlooSums {
 public:
  // `type` is float32 or float64; the result has the same bits on every rank. Both throw what Gloo
  // throws. Collective.
  //
  // Talks to ranks at distances 1, 2, 4, ... only.
  void by_doubling(const std::shared_ptr<gloo::Context>& mesh, void* data, DataType type,
                   std::size_t count);
  // In a mesh of two: the rows up to the first one that is not of these types, or larger, as if
  // they were one.
  void between_two(const std::shared_ptr<gloo::Context>& mesh, RowFeed& rows,
                   std::size_t row_bytes_max);

 private:
  std::vector<std::byte> theirs_;  // a peer's numbers
};

}  // namespace elasticrun::worker::collective
