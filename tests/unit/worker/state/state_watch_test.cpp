// Which steps are checked, and which changes are found.
#include "worker/state/state_watch.hpp"

#include <doctest/doctest.h>

namespace elasticrun::worker::state {
namespace {

const Time noon = Time{} + std::chrono::hours(12);
constexpr Duration ms = std::chrono::milliseconds(1);

// Three pieces of state and a gradient, checked in parts of 100 bytes.
struct Fixture {
  std::vector<std::byte> small{50}, empty, large{250};
  std::vector<double> gradients{0, 0};
  StateTable table;
  std::optional<StateWatch> watch;

  Fixture() {
    REQUIRE(table.add_state("empty", empty.data(), 0).has_value());
    REQUIRE(table.add_state("small", small.data(), small.size()).has_value());
    REQUIRE(table.add_gradients("gradients", gradients.data(), collective::DataType::float64, 2)
                .has_value());
    REQUIRE(table.add_state("large", large.data(), large.size()).has_value());
    table.seal();
    watch.emplace(table, 100);
  }
  // The name that is reported when compute changes this byte.
  std::string changing(std::byte& byte, std::uint64_t world, Time now) {
    watch->begin(Generation(world), now);
    byte ^= std::byte{1};
    return watch->changed().value_or("");
  }
};

TEST_CASE("the first step of each world is checked, and later ones only from time to time") {
  Fixture f;
  CHECK(f.changing(f.small[49], 1, noon) == "small");
  CHECK(f.changing(f.small[0], 1, noon) == "");
  // The large state has three parts, and each check covers one of them.
  CHECK(f.changing(f.large[0], 1, noon + 10 * ms) == "large");
  CHECK(f.changing(f.large[99], 1, noon + 10 * ms) == "");
  CHECK(f.changing(f.large[199], 2, noon + 10 * ms) == "large");
  CHECK(f.changing(f.large[249], 1, noon + 30 * ms) == "large");
  CHECK(f.changing(f.small[7], 1, noon + 40 * ms) == "small");
}

TEST_CASE("gradients, which compute may change, are not checked") {
  Fixture f;
  f.watch->begin(Generation(1), noon);
  f.gradients[0] = 7;
  CHECK_FALSE(f.watch->changed());
}

TEST_CASE("checks take a thousandth of the time") {
  std::vector<std::byte> state(2 * StateWatch::part_bytes);
  StateTable table;
  REQUIRE(table.add_state("state", state.data(), state.size()).has_value());
  table.seal();
  StateWatch watch(table);
  int looks = 0;
  for (Time now = noon; now < noon + std::chrono::minutes(5); now += 100 * ms) {
    watch.begin(Generation(1), now);
    state[0] ^= std::byte{1};
    state[StateWatch::part_bytes] ^= std::byte{1};
    looks += watch.changed() ? 1 : 0;
  }
  // Each check hashes 4 MiB twice, which takes about 2 ms at 4 GB/s.
  CHECK(looks >= 120);
  CHECK(looks <= 152);
}

}  // namespace
}  // namespace elasticrun::worker::state
