// Whether all members still hold the same state. They should, by the way they train; memory that
// fails, a library that is not deterministic, or a program that forgot to register its optimizer
// makes them differ, and nobody would see it: the loss still falls.
//
// Each step hashes another slice of what is registered and, as a few small numbers on the step's
// own reduction, compares the hashes: no message more, and the whole state in so many steps as the
// caller says. Why not the whole state at a time, rarely: for a large one that would be a step of
// twenty times the length.
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

// Ranks whose hash is not that of more than half of all; nothing: there is no such half.
std::optional<std::vector<int>> odd_ranks(std::span<const std::uint64_t> hashes);

class StateComparison {
 public:
  // Of a sealed table, which outlives this. All of it is looked at once in so many steps; 0: never.
  StateComparison(const StateTable& table, std::int64_t steps);

  bool on() const { return slices_ > 0; }
  // In this world nothing is compared any more: the difference has been reported.
  void stop(Generation world) { stopped_ = world; }
  bool stopped(Generation world) const { return stopped_ == world; }

  // Between apply and the next one. Throws GroupBroken when the GPU fails.
  std::uint64_t look(std::int64_t step);
  // What was looked at: "bytes 4096 to 8191 of 'weights'"; of the buffers it says so.
  std::string where() const;

 private:
  const std::span<const Segment> segments_;
  const StateImage image_;
  const std::uint64_t bytes_;
  std::uint64_t slices_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;  // of the slice last looked at
  std::vector<std::byte> copy_;        // of a slice that lies in several pieces, or on the GPU
  Generation stopped_;
};

}  // namespace elasticrun::worker::state
