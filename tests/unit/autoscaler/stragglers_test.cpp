// The score of a worker against its world, and when it counts as a straggler.
#include "autoscaler/stragglers.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

const Time start = Time(1h);
const Generation gen{3};

// Each member sends one report a second, of ten steps; speeds are samples per second of compute.
struct World {
  Stragglers stragglers{StragglerRule{.confirm = 5s}};
  std::vector<double> speeds;
  std::int64_t steps = 0;
  Time now = start;

  explicit World(std::vector<double> given) : speeds(std::move(given)) {
    std::vector<WorkerId> members;
    for (std::size_t i = 0; i < speeds.size(); ++i) members.push_back(id(i));
    stragglers.world_changed(gen, members);
  }
  static WorkerId id(std::size_t index) { return WorkerId(static_cast<std::uint32_t>(index) + 1); }
  void round(std::int64_t count = 10, std::int64_t share = 8) {
    now += 1s;
    steps += count;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      const auto samples = static_cast<double>(count * share);
      const auto compute = std::chrono::duration<double>(samples / speeds[i]);
      stragglers.observe({id(i), gen, StepId(steps), count, count * share, 1s,
                          std::chrono::duration_cast<Duration>(compute)},
                         now);
    }
  }
  std::vector<WorkerId> found() {
    std::vector<WorkerId> workers;
    for (const auto& one : stragglers.confirmed(now)) workers.push_back(one.worker);
    return workers;
  }
};

}  // namespace

TEST_CASE("the score is the smoothed speed relative to the median") {
  World world({100, 100, 100, 25});
  for (int i = 0; i < 12; ++i) world.round(1);
  // e = 0.1 f + 0.9 e, starting at 1; the last worker's first report is the first that has a
  // median.
  CHECK(*world.stragglers.score(World::id(3)) ==
        doctest::Approx(0.25 + 0.75 * std::pow(0.9, 12)).epsilon(0.001));
  CHECK(*world.stragglers.score(World::id(0)) == doctest::Approx(1));
}

TEST_CASE("several steps in one report count as if each had been reported") {
  World one({100, 50}), many({100, 50});
  for (int i = 0; i < 21; ++i) one.round(1);
  many.round(1);
  for (int i = 0; i < 4; ++i) many.round(5);
  CHECK(*one.stragglers.score(World::id(1)) ==
        doctest::Approx(*many.stragglers.score(World::id(1))));
}

TEST_CASE("a straggler is named once, after the confirmation time, whatever its rank") {
  for (const std::size_t slow : {0, 2}) {
    std::vector<double> speeds(4, 100);
    speeds[slow] = 25;
    World world(speeds);
    world.round();
    CHECK(world.found().empty());
    CHECK(world.stragglers.wake_at() == never);  // when it first reported, the others had not
    world.round();
    REQUIRE(world.stragglers.wake_at() != never);
    const Time due = world.stragglers.wake_at();
    while (world.now + 1s < due) {
      world.round();
      CHECK(world.found().empty());
    }
    world.round();
    CHECK(world.found() == std::vector<WorkerId>{World::id(slow)});
    world.round();
    CHECK(world.found().empty());
  }
}

TEST_CASE("a worker that recovers in time is no straggler, and may become one later") {
  World world({100, 100, 25});
  for (int i = 0; i < 4; ++i) world.round();
  world.speeds[2] = 100;
  for (int i = 0; i < 10; ++i) world.round();
  CHECK(world.found().empty());
  CHECK(world.stragglers.wake_at() == never);
  world.speeds[2] = 25;
  for (int i = 0; i < 10; ++i) world.round();
  CHECK(world.found() == std::vector<WorkerId>{World::id(2)});
}

TEST_CASE("mild slowness, unequal shares and a slow world make no straggler") {
  World mild({100, 100, 85});
  for (int i = 0; i < 20; ++i) mild.round();
  CHECK(mild.found().empty());

  World slow({10, 10, 10});
  for (int i = 0; i < 20; ++i) slow.round();
  CHECK(slow.found().empty());

  World shares({100, 100});
  for (int i = 0; i < 20; ++i) {
    shares.round();
    shares.stragglers.observe({World::id(1), gen, StepId(1), 10, 10, 1s, 100ms}, shares.now);
  }
  CHECK(shares.found().empty());
}

TEST_CASE("a new world keeps the scores of the members that stay") {
  World world({100, 100, 25});
  for (int i = 0; i < 4; ++i) world.round();
  const double before = *world.stragglers.score(World::id(2));
  world.stragglers.world_changed(gen.next(), {World::id(0), World::id(2)});
  CHECK(*world.stragglers.score(World::id(2)) == before);
  CHECK_FALSE(world.stragglers.score(World::id(1)).has_value());
  world.round();  // reports of the old world
  CHECK(*world.stragglers.score(World::id(2)) == before);
}

TEST_CASE("impossible values make no straggler") {
  World world({100, 100, 100});
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  for (int again = 0; again < 20; ++again) {
    world.round();
    world.stragglers.observe({World::id(0), gen, StepId(1), huge, 1, 1s, 1s}, world.now);
    world.stragglers.observe({World::id(1), gen, StepId(1), 1, huge, 1s, 1s}, world.now);
    world.stragglers.observe({World::id(2), gen, StepId(1), 1, 1, 1s, Duration(huge)}, world.now);
    CHECK(world.found().empty());
  }
  CHECK(world.stragglers.score(World::id(2)) == doctest::Approx(1));
}
