// The time of day, for events that people read (a driver).
#pragma once

#include <string>

namespace elasticrun::job::driver {

// "2026-11-22T07:23:05.123Z"
std::string utc_now();

}  // namespace elasticrun::job::driver
