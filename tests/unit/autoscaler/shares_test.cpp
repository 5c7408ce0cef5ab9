// Shares that follow measured speed: the values they settle at, and how rarely they change.
#include "autoscaler/shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/rng.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

using Weights = std::vector<double>;

// Workers that compute n samples in law(worker, n) milliseconds, with five steps per report and two
// reports per second. New shares take effect at once.
class World {
 public:
  using Law = std::function<double(std::size_t, double)>;

  World(std::size_t size, std::int64_t batch, Law given, double noise = 0)
      : law(std::move(given)), batch_(batch), noise_(noise) {
    for (std::size_t i = 0; i < size; ++i) members.push_back(member(i, fmt_type(i)));
    form();
  }
  static std::string fmt_type(std::size_t index) { return "host" + std::to_string(index); }
  static Member member(std::size_t index, std::string type) {
    return {WorkerId(static_cast<std::uint32_t>(index) + 1), std::move(type)};
  }

  void form() {
    weights = shares.weights(batch_, members);
    generation_ = generation_.next();
    shares.world_changed(generation_, members, batch_, weights);
  }
  std::vector<double> samples() const {
    if (!weights.empty()) return weights;
    std::vector<double> equal(members.size());
    const auto size = static_cast<std::int64_t>(members.size());
    for (std::size_t i = 0; i < equal.size(); ++i)
      equal[i] =
          static_cast<double>(batch_ / size + (static_cast<std::int64_t>(i) < batch_ % size));
    return equal;
  }
  std::vector<double> compute_ms() const {
    std::vector<double> times;
    const auto n = samples();
    for (std::size_t i = 0; i < n.size(); ++i)
      times.push_back(n[i] > 0 ? law(members[i].worker.value - 1, n[i]) : 0);
    return times;
  }
  double slowest_ms() const { return std::ranges::max(compute_ms()); }
  double spread() const {
    const auto [least, most] = std::ranges::minmax(compute_ms());
    return most / least - 1;
  }

  void report() {
    now += 500ms;
    const auto n = samples();
    const auto times = compute_ms();
    const double step = std::ranges::max(times) + sync_ms;
    for (std::size_t i = 0; i < n.size(); ++i) {
      const double factor = std::exp(noise_ * gauss());
      shares.observe({members[i].worker, generation_, StepId(0), 5,
                      5 * static_cast<std::int64_t>(n[i]), ms(5 * step),
                      ms(5 * times[i] * factor)});
    }
    shares.observe({.generation = generation_, .step_time = ms(step)});
  }
  void run(Duration time) {
    for (const Time end = now + time; now < end;) {
      report();
      const auto why = shares.better(now);
      if (!why) continue;
      reasons.push_back(*why);
      tried.push_back(now);
      form();
    }
  }

  Law law;
  std::vector<Member> members;
  Shares shares{10s};
  Weights weights;
  double sync_ms = 2;
  Time now{1h};
  std::vector<std::string> reasons;
  std::vector<Time> tried;

 private:
  static Duration ms(double value) { return Duration(std::llround(value * 1e6)); }
  double gauss() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += rng_.uniform();
    return sum;
  }

  std::int64_t batch_;
  double noise_;
  Rng rng_{7};
  Generation generation_;
};

World::Law linear(std::vector<double> ms_per_sample, double fixed_ms = 0) {
  return [=](std::size_t worker, double n) { return fixed_ms + ms_per_sample.at(worker) * n; };
}

}  // namespace

TEST_CASE("shares become proportional to measured speed, and stay there") {
  World world(4, 140, linear({1, 1, 1, 2}));
  CHECK(world.weights.empty());
  world.run(2500ms);  // the first report of each worker does not count
  CHECK(world.reasons.empty());
  world.run(1s);
  CHECK(world.weights == Weights{40, 40, 40, 20});
  CHECK(world.reasons ==
        std::vector<std::string>{"shares by speed: 40 40 40 20; the slowest member's compute takes "
                                 "70 ms a step, then 40 ms"});
  world.run(10min);
  CHECK(world.reasons.size() == 1);
}

TEST_CASE("shares settle after few changes where compute has a part that no share shortens") {
  struct Case {
    const char* name;
    std::vector<double> costs;
    double fixed;
  };
  for (const Case& c : {Case{"none", {1, 2}, 0}, Case{"a little", {1, 2}, 10},
                        Case{"as much as the rest", {1, 3}, 60}, Case{"three", {1, 2, 4}, 30}}) {
    CAPTURE(c.name);
    World world(c.costs.size(), 128, linear(c.costs, c.fixed));
    world.run(10min);
    CHECK(world.spread() < 0.1);
    CHECK(world.reasons.size() <= 3);
    const auto moves = world.reasons.size();
    world.run(1h);
    CHECK(world.reasons.size() == moves);
  }
}

TEST_CASE("shares stay where others would not shorten the step by 5 %") {
  SUBCASE("mild differences") {
    World world(4, 128, linear({1, 1, 1, 1.05}));
    world.run(1h);
    CHECK(world.reasons.empty());
  }
  SUBCASE("most of a step is not compute") {
    World world(4, 128, linear({1, 1, 1, 2}));
    world.sync_ms = 1000;
    world.run(1h);
    CHECK(world.reasons.empty());
  }
  SUBCASE("one worker") {
    World world(1, 128, linear({1}));
    world.run(1h);
    CHECK(world.reasons.empty());
  }
  SUBCASE("an unknown batch") {
    World world(2, 0, linear({1, 2}));
    world.run(1min);
    CHECK(world.reasons.empty());
  }
}

TEST_CASE("noise changes nothing, and does not hide real differences") {
  World alike(64, 2048, linear(std::vector<double>(64, 1)), 0.2);
  alike.run(30min);
  CHECK(alike.reasons.size() <= 1);

  std::vector<double> costs(16, 1);
  costs[5] = 2;
  World mixed(16, 512, linear(costs), 0.2);
  mixed.run(30min);
  CHECK(mixed.reasons.size() >= 1);
  CHECK(mixed.reasons.size() <= 4);
  CHECK(mixed.slowest_ms() < 1.15 * 512 / 15.5);
}

TEST_CASE("every worker gets a sample if there are enough, so that a recovery can be noticed") {
  double cost = 200;
  World world(3, 40, [&](std::size_t worker, double n) { return (worker == 2 ? cost : 1) * n; });
  world.run(1min);
  CHECK(world.weights == Weights{20, 19, 1});
  cost = 1;
  world.run(5min);
  CHECK(world.spread() < 0.1);
}

TEST_CASE("with fewer samples than workers a share may be empty") {
  World world(3, 2, linear({5, 1, 1}));
  world.run(1min);
  CHECK(world.weights == Weights{0, 2, 0});
  world.run(1h);
  CHECK(world.reasons.size() == 1);
}

TEST_CASE("shares that bring nothing are reverted, and tried more and more rarely") {
  // More than 32 samples at once do not fit: the rest takes a second call with its own fixed cost.
  const World::Law law = [](std::size_t worker, double n) {
    return 40 * std::ceil(n / 32) + (worker == 0 ? 1 : 2) * n;
  };
  World world(2, 64, law);
  const double before = world.slowest_ms();
  world.run(1h);
  REQUIRE(world.reasons.size() >= 2);
  CHECK(world.reasons[1].find("as before, when the slowest took") != std::string::npos);
  CHECK(world.slowest_ms() <= before);
  CHECK(world.tried[1] - world.tried[0] < 10s);  // a bad trial is short
  CHECK(world.tried.back() - world.tried.front() > 30min);
  CHECK(world.reasons.size() <= 18);
}

TEST_CASE("a worker that is slow from time to time does not make the shares oscillate") {
  bool slow = false;
  World world(2, 100,
              [&](std::size_t worker, double n) { return worker == 1 && slow ? 3 * n : n; });
  for (int i = 0; i < 120; ++i) {
    slow = i % 2 == 1;
    world.run(30s);
  }
  CHECK(world.reasons.size() < 20);
  slow = false;
  world.run(1h);
  CHECK(world.spread() < 0.1);
}

TEST_CASE("a newcomer starts with the speed of its host type, or with the typical speed") {
  World world(3, 120, linear({1, 1, 2, 2, 1}));
  world.members[1].type = "host0";
  world.members[2].type = "old";
  world.form();
  world.run(1min);
  CHECK(world.weights == Weights{48, 48, 24});
  world.members.push_back(World::member(3, "old"));
  world.form();
  CHECK(world.weights == Weights{40, 40, 20, 20});
  world.members.pop_back();
  world.members.push_back(World::member(4, "unheard of"));
  world.form();
  CHECK(world.weights == Weights{35, 34, 17, 34});
  // The last worker of a type has left, but the speed of the type is remembered.
  world.members = {World::member(0, "host0"), World::member(5, "old")};
  world.form();
  CHECK(world.weights == Weights{80, 40});
}

TEST_CASE("reports of other worlds, and those that may span two worlds, are ignored") {
  World world(2, 100, linear({1, 1}));
  world.run(1min);
  for (int i = 0; i < 100; ++i) {
    world.shares.observe({WorkerId(1), Generation(99), StepId(0), 5, 500, 1s, 10s});
    world.shares.observe({WorkerId(9), Generation(1), StepId(0), 5, 500, 1s, 10s});
    world.shares.observe({WorkerId(1), Generation(1), StepId(0), 0, 0, 1s, 10s});
  }
  world.run(1min);
  CHECK(world.reasons.empty());
}

TEST_CASE("shares that could not be applied are asked for again after a pause") {
  World world(2, 90, linear({1, 2}));
  for (int i = 0; i < 10; ++i) world.report();
  REQUIRE(world.shares.better(world.now).has_value());
  CHECK_FALSE(world.shares.better(world.now).has_value());
  // The change failed, so the world is as it was.
  const Time asked = world.now;
  while (!world.shares.better(world.now)) world.report();
  CHECK(world.now - asked >= 10s);
  CHECK(world.now - asked <= 11s);
  CHECK(world.shares.weights(90, world.members) == Weights{60, 30});
}
