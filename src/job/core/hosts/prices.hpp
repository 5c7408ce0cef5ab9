// What each size costs: the sum of the prices of the first `size` slots.
//
// A size takes slots in the order of the host file, so a file that names hosts of several types and
// prices forms mixed sets by itself: put the hosts in the order in which they are to be used.
// Choosing the best mixture for each size would be finer, but rank order, and which workers a
// shrinking job keeps, follow the file too, and a user can read the file.
#pragma once

#include <vector>

#include "autoscaler/policy.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::hosts {

// One offer per size. `prices` are per slot and hour; one that is 0 or missing means `standard`.
std::vector<autoscaler::Offer> offers(const std::vector<int>& sizes,
                                      const std::vector<SlotId>& slots,
                                      const std::vector<double>& prices, double standard);

}  // namespace elasticrun::job::hosts
