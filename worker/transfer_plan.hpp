// Who sends which bytes of the state to whom at a switch.
//
// The state is cut into one part per holder, so that all holders send at the same time. A part
// travels along a route: its holder, then every receiver in turn, each passing a chunk on as soon
// as it has it. So a holder sends its part once, however many newcomers there are, and each
// receiver begins a different part than its neighbour.
//
// Why not a part from every holder to every receiver: with r receivers a holder would send r times
// as much, and its network is what is short; why not a broadcast tree: it sends the whole state log
// r times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elasticrun::worker {

struct TransferPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<int> route;  // ranks: the holder, then all receivers
};

// A part is never smaller than this (but the only one): below it a second source only costs
// messages.
inline constexpr std::uint64_t transfer_part_bytes_min = 1u << 20;

// Parts in order of offset, without gaps; empty when nothing is to move (no receivers or no bytes).
// `holds` says for each rank whether it has the state; equal input gives equal plans on all ranks.
std::vector<TransferPart> plan_transfer(const std::vector<bool>& holds, std::uint64_t total_bytes);

}  // namespace elasticrun::worker
