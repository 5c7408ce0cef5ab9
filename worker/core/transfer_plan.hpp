// Which rank sends which bytes of the state to which rank at a switch.
//
// The state is cut into one part per source, so that all sources send at the same time. A part
// travels along a route: its source, then every receiver in turn, each passing a chunk on as soon
// as it has it. So a holder sends at most one part, once, however many newcomers there are, and
// each receiver begins with a different part than its neighbour.
//
// Why not a part from every holder to every receiver: with r receivers a holder would send r times
// as much, and its network is what is short; why not a broadcast tree: it sends the whole state log
// r times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elasticrun::worker::core {

struct TransferPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<int> route;  // ranks: the source, then all receivers
};

// A part is never smaller than this, unless it is the only one: below it a second source only costs
// messages.
inline constexpr std::uint64_t transfer_part_bytes_min = 1u << 20;
// More sources do not use the network better, and each costs its receiver a connection.
inline constexpr std::size_t transfer_parts_max = 64;

// Ranks in ascending order. The sources are all holders when they are few, otherwise some that lie
// far apart, since those are on different hosts.
struct TransferSides {
  std::vector<int> sources;
  std::vector<int> receivers;
};
// `holds` says for each rank whether it has the state; equal input gives equal plans on all ranks.
TransferSides sides_of_transfer(const std::vector<bool>& holds);

// The parts in order of offset, without gaps; empty when nothing is to move (no receivers, no
// sources or no bytes).
std::vector<TransferPart> plan_transfer(const std::vector<bool>& holds, std::uint64_t total_bytes);

// The ranks with which a rank exchanges messages of a transfer, for a state of any size: the size
// is not known to all ranks while the world is prepared. In no order, maybe with repetitions.
std::vector<int> transfer_peers(int rank, const TransferSides& sides);

}  // namespace elasticrun::worker::core
