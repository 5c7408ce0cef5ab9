// Every receiver gets every byte from exactly one holder.
#include "worker/core/transfer_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace elasticrun::worker::core;

namespace {

struct Case {
  const char* name;
  std::vector<bool> holds;
  std::uint64_t bytes;
  std::size_t parts;
};

constexpr std::uint64_t m = 1u << 20;

}  // namespace

TEST_CASE("every receiver is on the route of every byte exactly once") {
  const Case cases[] = {
      {"one holder, one receiver", {true, false}, 100 * m, 1},
      {"the receiver comes first", {false, true}, 100 * m, 1},
      {"three holders", {true, true, true, false}, 100 * m, 3},
      {"many receivers", {false, true, false, false, false, true, false}, 10 * m + 1, 2},
      {"odd size", {true, true, true, false}, 3 * m + 1, 3},
      {"not enough for a second source", {true, true, true, false}, 2 * m - 1, 1},
      {"more holders than bytes", {true, true, true, true, false}, 3, 1},
      {"one byte", {true, false}, 1, 1},
      {"nothing to move", {true, false}, 0, 0},
      {"nobody to receive", {true, true}, m, 0},
      {"a world of one", {true}, m, 0},
      {"nobody holds", {false, false}, m, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::vector<TransferPart> plan = plan_transfer(c.holds, c.bytes);
    REQUIRE(plan.size() == c.parts);
    std::set<int> receivers, holders;
    for (std::size_t rank = 0; rank < c.holds.size(); ++rank)
      if (!c.holds[rank]) receivers.insert(static_cast<int>(rank));
    std::uint64_t at = 0, smallest = c.bytes, largest = 0;
    for (const TransferPart& part : plan) {
      CHECK(part.offset == at);
      CHECK(part.bytes > 0);
      at += part.bytes;
      smallest = std::min(smallest, part.bytes);
      largest = std::max(largest, part.bytes);
      REQUIRE(!part.route.empty());
      CHECK(c.holds[static_cast<std::size_t>(part.route.front())]);
      CHECK(holders.insert(part.route.front()).second);  // one part per holder
      const std::set<int> others(part.route.begin() + 1, part.route.end());
      CHECK(others == receivers);
      CHECK(part.route.size() == receivers.size() + 1);
    }
    if (c.parts > 0) CHECK(at == c.bytes);
    if (c.parts > 0) CHECK(largest - smallest <= 128);
  }
}

TEST_CASE("consecutive parts enter the chain of receivers at different places") {
  const auto plan = plan_transfer({true, true, false, false, false}, 2 * m);
  REQUIRE(plan.size() == 2);
  CHECK(plan[0].route == std::vector<int>{0, 2, 3, 4});
  CHECK(plan[1].route == std::vector<int>{1, 3, 4, 2});
}

TEST_CASE("of thousands of holders only some send, evenly spread") {
  std::vector<bool> holds(3000, true);
  holds.push_back(false);
  const auto plan = plan_transfer(holds, 3000 * m + 17);
  REQUIRE(plan.size() == transfer_parts_max);
  std::uint64_t at = 0;
  int before = -47;
  for (const TransferPart& part : plan) {
    CHECK(part.offset == at);
    CHECK(part.route.front() - before >= 46);
    before = part.route.front();
    at += part.bytes;
  }
  CHECK(before >= 2950);
  CHECK(at == 3000 * m + 17);
}

TEST_CASE("a source has one peer, and receivers share the sources") {
  std::vector<bool> holds(300, true);
  for (int rank = 100; rank < 108; ++rank) holds[static_cast<std::size_t>(rank)] = false;
  const TransferSides sides = sides_of_transfer(holds);
  CHECK(sides.sources.size() == transfer_parts_max);
  CHECK(sides.receivers.size() == 8);
  for (const int source : sides.sources) CHECK(transfer_peers(source, sides).size() == 1);
  for (const int receiver : sides.receivers) CHECK(transfer_peers(receiver, sides).size() == 2 + 8);
  CHECK(transfer_peers(1, sides).empty());  // a holder that sends nothing
  CHECK(transfer_peers(1, sides_of_transfer({true, true})).empty());
}
