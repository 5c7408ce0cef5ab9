// The clock of leases: it counts while the machine sleeps, too (CLOCK_BOOTTIME).
//
// The monotonic clock stands still in a suspended laptop or virtual machine. With it, a host that
// wakes up after an hour would think that its lease still holds, while the controller has long
// given the host up. For drivers only.
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
