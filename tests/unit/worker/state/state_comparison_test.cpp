// Which ranks are named when states differ, and that a flipped bit is found within the given number
// of steps, wherever it is.
#include "worker/state/state_comparison.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "worker/state/machine_kind.hpp"

namespace elasticrun::worker::state {
namespace {

TEST_CASE("the ranks outside the majority are odd") {
  struct Case {
    std::vector<std::uint64_t> hashes;
    std::optional<std::vector<int>> odd;
  };
  for (const auto& [hashes, odd] :
       {Case{{7}, {{}}}, Case{{7, 7, 7}, {{}}}, Case{{7, 8, 7}, {{1}}},
        Case{{8, 7, 7, 9, 7}, {{0, 3}}}, Case{{7, 8}, std::nullopt},
        Case{{7, 7, 8, 8}, std::nullopt}, Case{{7, 7, 8, 9}, std::nullopt}, Case{{}, std::nullopt}})
    CHECK(odd_ranks(hashes) == odd);
}

struct Memory {
  std::vector<float> weights = std::vector<float>(5000, 0.5f);
  std::vector<double> rate = {0.1};
  std::vector<float> running = std::vector<float>(300, 1);
  StateTable table;

  Memory() {
    REQUIRE(
        table.add_state("weights", weights.data(), weights.size() * sizeof weights[0]).has_value());
    REQUIRE(table.add_state("rate", rate.data(), sizeof rate[0]).has_value());
    REQUIRE(
        table.add_buffers("running", running.data(), collective::DataType::float32, running.size())
            .has_value());
    table.seal();
  }
};

// One pass over both of them, starting at any step.
std::set<std::string> differing(Memory& a, Memory& b, std::int64_t steps, std::int64_t first) {
  StateComparison mine(a.table, steps), other(b.table, steps);
  std::set<std::string> places;
  for (std::int64_t step = first; step < first + steps; ++step)
    if (mine.look(step) != other.look(step)) places.insert(mine.where());
  return places;
}

TEST_CASE("one changed bit is found within the steps, and located") {
  for (const std::int64_t steps : {1, 3, 7, 1000}) {
    CAPTURE(steps);
    for (const std::size_t at : {std::size_t{0}, std::size_t{2500}, std::size_t{4999}}) {
      CAPTURE(at);
      Memory well, ill;
      CHECK(differing(well, ill, steps, 5).empty());
      ill.weights[at] = std::nextafter(ill.weights[at], 1.0f);
      const auto places = differing(well, ill, steps, 5);
      REQUIRE(places.size() == 1);
      CHECK(places.begin()->find("of 'weights'") != std::string::npos);
    }
    Memory well, ill;
    ill.rate[0] = 0.2;
    CHECK(differing(well, ill, steps, 0).size() == 1);
    Memory other;
    other.running[299] = 2;
    // not committed: compute may overwrite buffers
    CHECK(differing(well, other, steps, 0).empty());
    other.table.commit_buffers();
    const auto places = differing(well, other, steps, 0);
    REQUIRE(places.size() == 1);
    CHECK(places.begin()->find("of the buffers") != std::string::npos);
  }
}

TEST_CASE("nothing is compared without a state, or when the comparison is off") {
  Memory memory;
  CHECK_FALSE(StateComparison(memory.table, 0).on());
  CHECK(StateComparison(memory.table, 1).on());
  StateTable empty;
  empty.seal();
  CHECK_FALSE(StateComparison(empty, 100).on());
}

TEST_CASE("this machine has the same kind each time") {
  CHECK(kind_of_machine(nullptr) == kind_of_machine(nullptr));
}

}  // namespace
}  // namespace elasticrun::worker::state
