// Which samples each rank of a step computes, as text for the user. The text fits one message of a
// worker: the more ranks there are, the fewer samples of each it names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker/core/sampler.hpp"

namespace elasticrun::worker::core {

// One text per share: "17 4 301 and 29 more", or "(29 of them)" if none fits. The shares follow
// each other from place `first` of the epoch on. All texts together are far below
// wire::worker_message_bytes_max, also in the largest world.
std::vector<std::string> named_samples(std::int64_t first, std::span<const std::int64_t> shares,
                                       const Permutation& order);

}  // namespace elasticrun::worker::core
