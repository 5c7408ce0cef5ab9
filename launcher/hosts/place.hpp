// The ranks and sizes that each worker of a world gets, counted as torchrun counts them. They are
// computed for all workers together, so that a world of n costs one pass over n slots and not one
// pass for each worker. Pure.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "launcher/hosts/plan.hpp"

namespace elasticrun::launcher::hosts {

struct Place {
  Rank rank;
  int size = 0;        // number of workers in the world
  int group_rank = 0;  // rank of the worker's host; hosts are ordered by their first rank
  int groups = 0;      // number of hosts in the world
  HostId first_host;   // host of rank 0
  std::int32_t slot = 0;
  // The world's slots on the worker's host, ascending. All workers on the host share one list.
  std::shared_ptr<const std::vector<std::int32_t>> host_slots;

  // The position of `slot` in `host_slots`. Local ranks follow the order of the slots even where
  // the global ranks on the host do not, as after a replacement.
  int local_rank() const;
  int local_size() const { return static_cast<int>(host_slots->size()); }
};

// The place of each rank, in rank order. `world` is the slots of the world, in rank order.
std::vector<Place> places_of(std::span<const Slot> world);

}  // namespace elasticrun::launcher::hosts
