// Counts slots and sizes along the host list. Nothing here knows about processes.
#include "launcher/hosts/plan.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "base/check.hpp"

namespace elasticrun::launcher::hosts {

int slots_of(const Host& host, int default_slots) {
  const int slots = host.slots > 0 ? host.slots : default_slots;
  return host.slots_max > 0 ? std::min(slots, host.slots_max) : slots;
}

HostId HostBook::meet(const Host& host) {
  const HostId fresh(static_cast<HostId::rep>(ids_.size()));
  return ids_.emplace(key_of(host), fresh).first->second;
}

Plan make_plan(const std::vector<Host>& hosts, int default_slots, HostBook& book) {
  ER_CHECK(default_slots >= 1);
  Plan plan;
  for (const Host& host : hosts) {
    const HostId id = book.meet(host);
    const int count = slots_of(host, default_slots);
    auto& out = host.spare ? plan.spares : plan.slots;
    for (int slot = 0; slot < count; ++slot)
      out.push_back({id, host.name, slot, host.price / count});
    if (!host.spare) plan.slots_by_host.push_back(count);
  }
  return plan;
}

std::vector<int> count_by_host(const std::vector<Slot>& slots) {
  std::vector<int> counts;
  for (auto slot = slots.begin(); slot != slots.end(); ++slot) {
    if (slot == slots.begin() || slot->host != std::prev(slot)->host) counts.push_back(0);
    ++counts.back();
  }
  return counts;
}

int slots_within(const std::vector<int>& slots_by_host, int max_hosts) {
  const auto hosts = max_hosts > 0 ? std::min<std::ptrdiff_t>(max_hosts, std::ssize(slots_by_host))
                                   : std::ssize(slots_by_host);
  return std::accumulate(slots_by_host.begin(), slots_by_host.begin() + hosts, 0);
}

std::vector<int> reachable_sizes(const std::vector<int>& slots_by_host, Unit unit,
                                 const Limits& limits, int start) {
  int total = 0;
  int least = std::max(limits.min, 1);
  int hosts = 0;
  std::set<int> sizes;
  for (const int slots : slots_by_host) {
    if (limits.max_hosts > 0 && hosts == limits.max_hosts) break;
    total += slots;
    sizes.insert(total);
    // The smallest size that needs min_hosts hosts: all slots of fewer hosts are still too few.
    if (++hosts == limits.min_hosts)
      least = std::max(least, unit == Unit::host ? total : total - slots + 1);
  }
  if (hosts < limits.min_hosts) return {};
  const int most = limits.max > 0 ? std::min(limits.max, total) : total;
  if (most >= 1) sizes.insert(most);
  if (start > 0) sizes.insert(start);
  if (unit == Unit::slot)
    for (int size = least; size <= most; ++size) sizes.insert(size);
  std::vector<int> allowed;
  std::ranges::copy_if(sizes, std::back_inserter(allowed),
                       [&](int size) { return size >= least && size <= most; });
  return allowed;
}

}  // namespace elasticrun::launcher::hosts
