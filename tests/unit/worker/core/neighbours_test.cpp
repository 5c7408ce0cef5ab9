// Ranks that exchange messages are neighbours, both of them know it, and connections stay few.
#include "worker/core/neighbours.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

namespace elasticrun::worker::core {
namespace {

bool is_one(const std::vector<int>& ranks, int rank) {
  return std::ranges::binary_search(ranks, rank);
}

std::vector<std::vector<int>> all_neighbours(const std::vector<bool>& holds) {
  const int size = static_cast<int>(holds.size());
  const TransferSides sides = sides_of_transfer(holds);
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(neighbours(rank, size, sides));
  return all;
}

// Several patterns of which ranks hold the state, in a world of `size`.
std::vector<std::vector<bool>> patterns(std::size_t size) {
  std::vector<std::vector<bool>> patterns;
  const auto add = [&](auto&& holds) {
    std::vector<bool>& pattern = patterns.emplace_back();
    for (std::size_t rank = 0; rank < size; ++rank) pattern.push_back(holds(rank));
  };
  add([](std::size_t) { return true; });
  add([](std::size_t rank) { return rank == 0; });
  add([&](std::size_t rank) { return rank + 1 < size; });
  add([&](std::size_t rank) { return 2 * rank < size; });
  add([](std::size_t rank) { return rank % 3 == 1; });
  add([](std::size_t rank) { return rank % 64 != 5; });
  add([](std::size_t rank) { return (rank * 2654435761u >> 7 & 3) != 0; });
  return patterns;
}

TEST_CASE("neighbours are mutual and sorted, and no rank is its own neighbour") {
  for (const std::size_t size : {1u, 2u, 3u, 32u, 33u, 40u, 63u, 64u, 65u, 100u, 257u, 1000u}) {
    CAPTURE(size);
    for (const std::vector<bool>& holds : patterns(size)) {
      const auto all = all_neighbours(holds);
      for (int rank = 0; rank < static_cast<int>(size); ++rank) {
        const std::vector<int>& own = all[static_cast<std::size_t>(rank)];
        REQUIRE(std::ranges::adjacent_find(own, std::greater_equal<>()) == own.end());
        REQUIRE_FALSE(is_one(own, rank));
        for (const int peer : own) {
          REQUIRE(peer >= 0);
          REQUIRE(peer < static_cast<int>(size));
          REQUIRE(is_one(all[static_cast<std::size_t>(peer)], rank));
        }
      }
    }
  }
}

TEST_CASE("in a small world all ranks are neighbours") {
  CHECK(neighbours(0, 1, {}).empty());
  CHECK(neighbours(1, 3, {}) == std::vector<int>{0, 2});
  for (int size = 2; size <= full_mesh_max; ++size)
    CHECK(neighbours(size / 2, size, {}).size() == static_cast<std::size_t>(size - 1));
}

TEST_CASE("in a large world neighbours are at powers of two around the circle") {
  CHECK(neighbours(0, 33, {}) == std::vector<int>{1, 2, 4, 8, 16, 17, 25, 29, 31, 32});
  CHECK(neighbours(63, 64, {}) == std::vector<int>{0, 1, 3, 7, 15, 31, 47, 55, 59, 61, 62});
}

TEST_CASE("every message of a transfer goes between neighbours, whatever the size of the state") {
  constexpr std::uint64_t m = 1u << 20;
  for (const std::size_t size : {33u, 100u, 300u})
    for (const std::vector<bool>& holds : patterns(size)) {
      const auto all = all_neighbours(holds);
      for (const std::uint64_t bytes : {std::uint64_t{1}, 7 * m, 63 * m + 5, 5000 * m})
        for (const TransferPart& part : plan_transfer(holds, bytes))
          for (std::size_t i = 0; i + 1 < part.route.size(); ++i)
            REQUIRE(is_one(all[static_cast<std::size_t>(part.route[i])], part.route[i + 1]));
    }
}

TEST_CASE("the connections of a world grow little faster than its ranks") {
  for (const std::size_t size : {100u, 1000u, 5000u}) {
    CAPTURE(size);
    for (const std::vector<bool>& holds : patterns(size)) {
      std::size_t ends = 0, most = 0;
      for (const auto& own : all_neighbours(holds)) {
        ends += own.size();
        most = std::max(most, own.size());
      }
      const auto powers = static_cast<std::size_t>(std::bit_width(size - 1));
      // Besides the sources, a receiver has two other receivers, whose ends are counted elsewhere.
      CHECK(most <= 2 * powers + transfer_parts_max + 2);
      CHECK(ends <= size * (2 * powers + 2) + 2 * transfer_parts_max);
    }
  }
}

}  // namespace
}  // namespace elasticrun::worker::core
