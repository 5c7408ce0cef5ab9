// Sums up hosts and prices along the slots (prices.hpp).
#include "job/core/hosts/prices.hpp"

#include <set>

namespace elasticrun::job::hosts {

std::vector<autoscaler::Offer> offers(const std::vector<int>& sizes,
                                      const std::vector<SlotId>& slots,
                                      const std::vector<double>& prices, double standard) {
  std::vector<autoscaler::Offer> all;
  std::set<HostId> hosts;
  double sum = 0;
  std::size_t taken = 0;
  for (const int size : sizes) {
    for (; taken < slots.size() && taken < static_cast<std::size_t>(size); ++taken) {
      hosts.insert(slots[taken].host);
      const double price = taken < prices.size() ? prices[taken] : 0;
      sum += price > 0 ? price : standard;
    }
    all.push_back({.size = size, .hosts = static_cast<int>(hosts.size()), .price = sum});
  }
  return all;
}

}  // namespace elasticrun::job::hosts
