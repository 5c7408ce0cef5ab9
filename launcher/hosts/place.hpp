// Where workers stand in a world, as torchrun counts it: all of them at once, so that a world of n
// costs n and not n for each of n workers. Pure.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "launcher/hosts/plan.hpp"

namespace elasticrun::launcher::hosts {

struct Place {
  Rank rank;
  int size = 0;        // of the world
  int group_rank = 0;  // of its host: hosts count in the order of their first rank
  int groups = 0;      // hosts
  HostId first_host;   // of rank 0
  std::int32_t slot = 0;
  // Those of the world on its host, in their order; one list for all workers there.
  std::shared_ptr<const std::vector<std::int32_t>> host_slots;

  // Ranks of one host need not follow its slots, as after a replacement; local ranks do.
  int local_rank() const;
  int local_size() const { return static_cast<int>(host_slots->size()); }
};

// Of each rank, where these slots are the world, in rank order.
std::vector<Place> places_of(std::span<const Slot> world);

}  // namespace elasticrun::launcher::hosts
