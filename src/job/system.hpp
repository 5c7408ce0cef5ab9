// What a job asks of the system: chance, and the time of day (a driver).
#pragma once

#include <cstddef>
#include <string>

namespace elasticrun::job {

// That nobody can guess.
std::string random_bytes(std::size_t count);
// "2026-11-22T07:23:05.123Z"
std::string utc_now();

}  // namespace elasticrun::job
