// The largest-remainder method (Hamilton's) on integers.
#include "worker/core/shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace elasticrun::worker::core {
namespace {

// Weights are integers in [0, unit]; 2^40 samples times 2^20 fits easily in 64 bits.
constexpr double unit = 1 << 20;

std::vector<std::int64_t> equal_shares(std::int64_t n, int size) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(size), n / size);
  std::for_each_n(shares.begin(), n % size, [](std::int64_t& share) { ++share; });
  return shares;
}

// The weights as integers in [0, unit]; empty when no weight is usable.
std::vector<std::int64_t> whole_weights(std::span<const double> weights) {
  const auto usable = [](double weight) { return std::isfinite(weight) && weight > 0; };
  double largest = 0;
  for (const double weight : weights)
    if (usable(weight)) largest = std::max(largest, weight);
  if (largest == 0) return {};
  std::vector<std::int64_t> whole;
  whole.reserve(weights.size());
  for (const double weight : weights)
    whole.push_back(usable(weight) ? std::llround(weight / largest * unit) : 0);
  return whole;
}

}  // namespace

std::vector<std::int64_t> split(std::int64_t n, int size, std::span<const double> weights) {
  ER_CHECK(n >= 0 && n <= max_global_batch && size > 0, "a step outside its limits");
  ER_CHECK(weights.empty() || std::ssize(weights) == size, "one weight for each rank");
  const std::vector<std::int64_t> whole = whole_weights(weights);
  if (whole.empty()) return equal_shares(n, size);

  const std::int64_t total = std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
  std::vector<std::int64_t> shares, remainders, ranks(whole.size());
  for (const std::int64_t weight : whole) {
    shares.push_back(n * weight / total);
    remainders.push_back(n * weight % total);
  }
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, std::greater{}, [&](std::int64_t rank) {
    return remainders[static_cast<std::size_t>(rank)];
  });
  // The remainders add up to a multiple of the total, and each is below the total, so fewer samples
  // are left than there are ranks with a remainder.
  const std::int64_t left = n - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (std::int64_t k = 0; k < left; ++k)
    ++shares[static_cast<std::size_t>(ranks[static_cast<std::size_t>(k)])];
  return shares;
}

std::int64_t offset(std::span<const std::int64_t> shares, int rank) {
  ER_CHECK(rank >= 0 && rank <= std::ssize(shares), "a rank outside the world");
  return std::accumulate(shares.begin(), shares.begin() + rank, std::int64_t{0});
}

std::vector<std::int64_t> pieces(std::int64_t share, std::int64_t micro_batch) {
  ER_CHECK(share >= 0 && micro_batch >= 0);
  if (share == 0) return {};
  if (micro_batch == 0 || micro_batch >= share) return {share};
  return split(share, static_cast<int>((share + micro_batch - 1) / micro_batch));
}

}  // namespace elasticrun::worker::core
