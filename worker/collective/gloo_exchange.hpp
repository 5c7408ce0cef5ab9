// Sums a short row of float64 while other collectives of the group go on: each rank sends its
// numbers to all others at once, and adds up what it gets. A step's votes and figures take their
// way beside the gradients like this, and not after them.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace elasticrun::worker::collective {

class GlooExchange {
 public:
  // Every rank sends to every other, so the group is small, and so is the row.
  static constexpr int ranks_max = 16;
  static constexpr std::size_t numbers_max = 512;

  // Sends the numbers, which lie still until finish(). All ranks have as many. `slot`: of no other
  // message of the group.
  GlooExchange(const std::shared_ptr<gloo::Context>& mesh, std::span<double> numbers,
               std::uint64_t slot);
  // Waits for the others' numbers, and replaces ours by the sums, the same bits on every rank.
  void finish(std::chrono::milliseconds limit);

 private:
  const std::size_t rank_;
  const std::span<double> numbers_;
  std::vector<double> all_;  // of each rank
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> parts_;
};

}  // namespace elasticrun::worker::collective
