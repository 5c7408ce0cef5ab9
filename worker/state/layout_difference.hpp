// Finds the first registration that differs between the members of a world.
#pragma once

#include <string>

#include "worker/state/layout.hpp"

namespace elasticrun::worker::state {

// Returns the same line on all ranks: "registration 3 is state 'w' (400 bytes) on rank 1 and
// missing on rank 0". Collective; called when the layout of at least one rank differs from that of
// rank `lead`. The lead sends 8 bytes for each of its registrations. Throws GroupBroken.
std::string layout_difference(collective::Group& group, const Layout& own, int lead);

}  // namespace elasticrun::worker::state
