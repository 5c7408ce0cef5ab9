// See neighbours.hpp.
#include "worker/core/neighbours.hpp"

#include <algorithm>
#include <cstdint>

namespace elasticrun::worker::core {

std::vector<int> neighbours(int rank, int size, const TransferSides& transfer) {
  std::vector<int> ranks;
  if (is_full_mesh(size)) {
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank) ranks.push_back(peer);
    return ranks;
  }
  ranks = transfer_peers(rank, transfer);
  for (std::int64_t distance = 1; distance < size; distance *= 2) {
    ranks.push_back(static_cast<int>((rank + distance) % size));
    ranks.push_back(static_cast<int>((rank + size - distance) % size));
  }
  std::ranges::sort(ranks);
  const auto twice = std::ranges::unique(ranks);
  ranks.erase(twice.begin(), twice.end());
  return ranks;
}

}  // namespace elasticrun::worker::core
