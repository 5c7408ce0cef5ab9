// The order of ranks after losses, replacements and decisions.
#include "rendezvous/rank_table.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::rendezvous {
namespace {

// "+3" adds worker 3, "-3" loses it, "x3" removes it by decision.
std::string order_after(const char* moves) {
  RankTable rank_table;
  for (const char* at = moves; *at != 0; at += at[2] == ' ' ? 3 : 2) {
    const WorkerId worker(static_cast<std::uint32_t>(at[1] - '0'));
    if (*at == '+') rank_table.add(worker);
    if (*at == '-') rank_table.vacate(worker);
    if (*at == 'x') rank_table.remove(worker);
  }
  std::string text;
  for (const WorkerId worker : rank_table.order()) text += std::to_string(worker.value);
  return text;
}

TEST_CASE("ranks keep their order, and a replacement takes the lowest vacant rank") {
  struct Case {
    const char* moves;
    const char* order;
  };
  const Case cases[] = {
      {"", ""},
      {"+1 +2 +3", "123"},          // the first world: in the order given
      {"+1 +2 +3 -2", "13"},        // survivors keep their order
      {"+1 +2 +3 -2 +4", "143"},    // a replacement takes the lost rank
      {"+1 +2 +3 -3 -1 +4", "42"},  // the lowest vacant rank first
      {"+1 +2 +3 -3 -1 +4 +5", "425"},
      {"+1 +2 +3 +4", "1234"},      // further workers are appended
      {"+1 +2 +3 x2 +4", "134"},    // removed by decision: its rank is removed as well
      {"+1 +2 +3 -1 x3 +4", "24"},  // and so are vacant ranks
      {"+1 -9", "1"},               // an unknown worker has no rank
  };
  for (const Case& c : cases) {
    CAPTURE(c.moves);
    CHECK(order_after(c.moves) == c.order);
  }
}

}  // namespace
}  // namespace elasticrun::rendezvous
