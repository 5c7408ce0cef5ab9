// See place.hpp.
#include "launcher/hosts/place.hpp"

#include <algorithm>
#include <map>

namespace elasticrun::launcher::hosts {

int Place::local_rank() const {
  return static_cast<int>(std::ranges::lower_bound(*host_slots, slot) - host_slots->begin());
}

std::vector<Place> places_of(std::span<const Slot> world) {
  struct Group {
    int rank = 0;
    std::shared_ptr<std::vector<std::int32_t>> slots =
        std::make_shared<std::vector<std::int32_t>>();
  };
  std::map<HostId, Group> groups;
  for (const Slot& slot : world) {
    const auto rank = static_cast<int>(groups.size());
    const auto [group, first] = groups.try_emplace(slot.host);
    if (first) group->second.rank = rank;
    group->second.slots->push_back(slot.slot);
  }
  for (auto& [host, group] : groups) std::ranges::sort(*group.slots);
  std::vector<Place> places;
  places.reserve(world.size());
  for (const Slot& slot : world) {
    const Group& group = groups.at(slot.host);
    places.push_back({.rank = Rank(static_cast<std::int32_t>(places.size())),
                      .size = static_cast<int>(world.size()),
                      .group_rank = group.rank,
                      .groups = static_cast<int>(groups.size()),
                      .first_host = world.front().host,
                      .slot = slot.slot,
                      .host_slots = group.slots});
  }
  return places;
}

}  // namespace elasticrun::launcher::hosts
