// Which registration it is that differs between the members of a world.
#pragma once

#include <string>

#include "worker/state/layout.hpp"

namespace elasticrun::worker::state {

// The same line on all ranks: "registration 3 is state 'w' (400 bytes) on rank 1 and missing on
// rank 0". Collective, for when the layout of at least one rank is not that of `lead`; what the
// lead sends is in proportion to the number of its registrations. Throws GroupBroken.
std::string layout_difference(collective::Group& group, const Layout& own, int lead);

}  // namespace elasticrun::worker::state
