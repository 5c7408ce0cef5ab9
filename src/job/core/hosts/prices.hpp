// What sizes cost: the price of a slot, and of the first so many slots.
//
// A size takes slots in the order of the host file, so a file that names hosts of several types and
// prices forms mixed sets by itself: put the hosts in the order in which they are to be used.
// Choosing the best mixture for each size would be finer, but rank order, and whom a shrinking job
// keeps, follow the file too, and a person can read it.
#pragma once

#include <vector>

#include "autoscaler/policy.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::hosts {

// `prices` are those of the slots, per hour; 0, or none at all: `standard`.
std::vector<autoscaler::Offer> offers(const std::vector<int>& sizes,
                                      const std::vector<job::SlotId>& slots,
                                      const std::vector<double>& prices, double standard);

}  // namespace elasticrun::job::hosts
