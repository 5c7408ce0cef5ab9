// See policy.hpp.
#include "autoscaler/policy.hpp"

#include <algorithm>
#include <cmath>

namespace elasticrun::autoscaler {

double worth(double samples_per_s, int size, double min_gain) {
  return samples_per_s / std::pow(static_cast<double>(size), min_gain);
}

Offer offer_of(const std::vector<Offer>& offers, int size) {
  const auto above = std::ranges::lower_bound(offers, size, {}, &Offer::size);
  if (above != offers.end() && above->size == size) return *above;
  Offer none{.size = size, .price = static_cast<double>(size)};
  if (offers.empty()) return none;
  const Offer& near = above == offers.end() ? offers.back() : *above;
  none.price *= near.price / near.size;
  return none;
}

}  // namespace elasticrun::autoscaler
