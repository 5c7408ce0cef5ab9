// With whom a rank of a world has a connection.
//
// In a small world with everybody. In a large one that would be a million connections for a
// thousand ranks, and as many addresses to send, while a rank talks to few: what the collectives
// use are the ranks at distances of powers of two around the circle of all (gloo_group.cpp), and
// the transfer of the state uses its plan's. So n ranks have some n log n connections.
//
// Why not dial a peer when it is first needed: the world is prepared while the present one steps,
// and a connection that cannot be made stops nobody then.
#pragma once

#include <vector>

#include "worker/core/transfer_plan.hpp"

namespace elasticrun::worker::core {

// Ranks of larger worlds have fewer neighbours than peers.
inline constexpr int full_mesh_max = 32;
inline constexpr bool is_full_mesh(int size) { return size <= full_mesh_max; }

// In ascending order, without itself. Who is a neighbour of another has it for a neighbour.
std::vector<int> neighbours(int rank, int size, const TransferSides& transfer);

}  // namespace elasticrun::worker::core
