// Which slots should have a worker. Pure functions of the present slots and workers.
#pragma once

#include <vector>

#include "job/core/workers/slots.hpp"
#include "job/core/workers/workers.hpp"

namespace elasticrun::job::workers {

// The slots that should have a worker when `size` workers are wanted. First those that have one, so
// that survivors stay (`members` before others, ready workers before starting ones), then free
// slots in order, then those whose worker is slow or left out.
std::vector<SlotId> wanted_slots(const Slots& slots, const Workers& workers, int size, Time now,
                                 const std::vector<WorkerId>& members = {});

// True: beyond the slots that `size` workers take there is another one, free or with a spare in it.
// Slots whose worker is slow or left out do not count.
bool has_substitute(const Slots& slots, const Workers& workers, int size, Time now);

}  // namespace elasticrun::job::workers
