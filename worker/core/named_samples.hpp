// Which samples each rank of a step computes, as text for the user. A worker's message has a limit,
// and the more ranks there are, the fewer samples of each are named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker/core/sampler.hpp"

namespace elasticrun::worker::core {

// "17 4 301 and 29 more" for each share; the shares follow each other from place `first` of the
// epoch on. All texts together are far below wire::worker_message_bytes_max, also in the largest
// world.
std::vector<std::string> named_samples(std::int64_t first, std::span<const std::int64_t> shares,
                                       const Permutation& order);

}  // namespace elasticrun::worker::core
