// Which slots should have a worker. Pure functions of what is there.
#pragma once

#include <vector>

#include "job/core/workers/slots.hpp"
#include "job/core/workers/workers.hpp"

namespace elasticrun::job::workers {

// The slots that should have a worker when `size` workers are wanted: those that have one first, so
// that survivors stay (`members` before others, who is ready before who starts), then free ones in
// order, then those that have a slow one or one that is left out.
std::vector<job::SlotId> wanted_slots(const Slots& slots, const Workers& workers, int size,
                                      Time now, const std::vector<WorkerId>& members = {});

// Beyond those that so many workers take there is a slot: free, or with a spare in it. Slots that
// have a slow worker do not count.
bool has_substitute(const Slots& slots, const Workers& workers, int size, Time now);

}  // namespace elasticrun::job::workers
