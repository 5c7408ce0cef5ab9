// Checks whether all members still hold the same state. They should, by the way they train; failing
// memory, a library that is not deterministic, or a program that forgot to register its optimizer
// makes them differ, and it would go unnoticed, since the loss still falls.
//
// Each step hashes another slice of the registered memory and compares the hashes by a few small
// numbers on the step's own reduction: without another message, and the whole state within the
// number of steps that the caller sets. Why not the whole state at once, rarely: for a large state
// that step would take twenty times as long.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/core/agreement.hpp"
#include "worker/state/state.hpp"
#include "worker/state/state_image.hpp"

namespace elasticrun::worker::state {

// The ranks whose hash differs from the one that more than half of all ranks have; nullopt when no
// hash has such a majority.
std::optional<std::vector<int>> odd_ranks(std::span<const std::uint64_t> hashes);

class StateComparison {
 public:
  // `table` is sealed and outlives this. All that is registered is hashed once in `steps` steps; 0:
  // never.
  StateComparison(const StateTable& table, std::int64_t steps);

  bool on() const { return slices_ > 0; }
  // Ends the comparison in this world: the difference has been reported.
  void stop(Generation world) { stopped_ = world; }
  bool stopped(Generation world) const { return stopped_ == world; }

  // The hash of the slice of this step. Called between one apply and the next. Throws GroupBroken
  // when the GPU fails.
  std::uint64_t look(std::int64_t step);
  // The slice last hashed, as text: "bytes 4096 to 8191 of 'weights'", or "of the buffers".
  std::string where() const;

 private:
  const std::span<const Segment> segments_;
  const StateImage image_;
  const std::uint64_t bytes_;
  std::uint64_t slices_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;  // byte range of the slice last hashed
  std::vector<std::byte> copy_;        // copy of a slice that lies in several pieces, or on the GPU
  Generation stopped_;
};

}  // namespace elasticrun::worker::state
