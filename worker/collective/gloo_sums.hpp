// Sums over a Gloo mesh that Gloo itself has not, in place: with few messages, for data so small
// that their number decides the cost; and between two ranks.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <cstddef>
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

class GlooSums {
 public:
  // `type` is float32 or float64; the result has the same bits on every rank. Both throw what Gloo
  // throws. Collective.
  //
  // Talks to ranks at distances 1, 2, 4, ... only.
  void by_doubling(const std::shared_ptr<gloo::Context>& mesh, void* data, DataType type,
                   std::size_t count);
  // In a mesh of two: several rows as if they were one.
  void between_two(const std::shared_ptr<gloo::Context>& mesh, std::span<const Group::Row> rows);

 private:
  std::vector<std::byte> theirs_;  // a peer's numbers
};

}  // namespace elasticrun::worker::collective
