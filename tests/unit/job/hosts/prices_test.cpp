// Offers for mixed hosts, summed up by hand.
#include "job/core/hosts/prices.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::hosts;

TEST_CASE("an offer sums up the hosts and prices of its first slots") {
  // Two slots at 0.5 each, one without a price, and two at 3.
  std::vector<SlotId> slots;
  for (const auto& [host, index] : {std::pair{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}})
    slots.push_back({HostId(static_cast<std::uint32_t>(host)), index});
  const auto all = offers({2, 3, 4, 5, 6}, slots, {0.5, 0.5, 0, 3, 3}, 2);
  struct Case {
    int size;
    int hosts;
    double price;
  };
  const Case cases[] = {{2, 1, 1}, {3, 2, 3}, {4, 3, 6}, {5, 3, 9}, {6, 3, 9}};
  REQUIRE(all.size() == std::size(cases));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].size == cases[i].size);
    CHECK(all[i].hosts == cases[i].hosts);
    CHECK(all[i].price == doctest::Approx(cases[i].price));
  }
  CHECK(offers({3}, slots, {}, 1).front().price == 3);
}
