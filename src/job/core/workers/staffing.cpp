// See staffing.hpp.
#include "job/core/workers/staffing.hpp"

#include <algorithm>
#include <ranges>
#include <set>

namespace elasticrun::job::workers {

std::vector<SlotId> wanted_slots(const Slots& slots, const Workers& workers, int size, Time now,
                                 const std::vector<WorkerId>& members) {
  std::vector<SlotId> wanted;
  std::vector<SlotId> free;
  std::vector<SlotId> last;
  for (const SlotId slot : slots.all()) {
    const auto id = workers.in(slot);
    if (id && !workers.find(*id)->departed())
      (slots.avoided(slot, now) ? last : wanted).push_back(slot);
    else if (!id && slots.usable(slot, now))
      free.push_back(slot);
    // A slot whose worker is about to end is neither: it is free when the worker has gone.
  }
  const auto limit = static_cast<std::size_t>(std::max(size, 0));
  // Of too many the last ones go: starting workers first, then those outside the world, then any.
  const std::set<WorkerId> in_world(members.begin(), members.end());
  const auto starts = [&](SlotId slot) { return !workers.find(*workers.in(slot))->was_ready(); };
  const auto waits = [&](SlotId slot) { return !in_world.contains(*workers.in(slot)); };
  const auto leave = [&](auto goes) {
    std::size_t too_many = wanted.size() - std::min(wanted.size(), limit);
    std::vector<SlotId> stay;
    for (const SlotId slot : wanted | std::views::reverse)
      if (too_many > 0 && goes(slot))
        --too_many;
      else
        stay.push_back(slot);
    wanted.assign(stay.rbegin(), stay.rend());
  };
  leave(starts);
  leave(waits);
  leave([](SlotId) { return true; });
  for (const auto& more : {free, last})
    for (const SlotId slot : more)
      if (wanted.size() < limit) wanted.push_back(slot);
  return wanted;
}

bool has_substitute(const Slots& slots, const Workers& workers, int size, Time now) {
  const auto sound = [&](SlotId slot) {
    const auto id = workers.in(slot);
    if (!id) return slots.usable(slot, now);
    return !workers.find(*id)->departed() && !slots.avoided(slot, now);
  };
  return std::ranges::count_if(slots.all(), sound) > size;
}

}  // namespace elasticrun::job::workers
