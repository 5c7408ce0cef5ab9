// The peers to which a rank of a world has a connection.
//
// In a small world these are all other ranks. In a large one that would be a million connections
// for a thousand ranks, and as many addresses to send, while a rank talks to few: the collectives
// use the ranks at distances of powers of two around the circle of all ranks (gloo_group.cpp), and
// the transfer of the state uses the ranks in its plan. So n ranks have about n log n connections.
//
// Why not dial a peer when it is first needed: the next world is prepared while the present one
// steps, and a connection that cannot be made then holds up no member.
#pragma once

#include <vector>

#include "worker/core/transfer_plan.hpp"

namespace elasticrun::worker::core {

// The largest world in which every rank is connected to all others.
inline constexpr int full_mesh_max = 32;
inline constexpr bool is_full_mesh(int size) { return size <= full_mesh_max; }

// The neighbours of `rank` in ascending order, without itself. The relation is symmetric.
std::vector<int> neighbours(int rank, int size, const TransferSides& transfer);

}  // namespace elasticrun::worker::core
