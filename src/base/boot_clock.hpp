// The clock by which leases are counted: it goes on while the machine sleeps (CLOCK_BOOTTIME).
//
// The monotonic clock stands still in a suspended laptop or virtual machine. A host that wakes up
// after an hour would then think that its lease goes on, while the controller has long given it up.
// For drivers only.
#pragma once

#include <ctime>

#include "base/time.hpp"

namespace elasticrun {

inline Time boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace elasticrun
