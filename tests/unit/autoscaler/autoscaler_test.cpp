// Rules that hold for every policy, the fixed policy, and properties over random jobs.
#include "autoscaler/autoscaler.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

const Time start{};

Autoscaler make(std::string policy, int target, int min, int max, std::vector<int> sizes) {
  Options options;
  options.policy = std::move(policy);
  options.target = target;
  options.aims = {.utility = {{1min, 2}, {1h, 1}}, .budget = 3, .deadline = 20min};
  options.limits.min = min;
  options.limits.max = max;
  options.limits.sizes = std::move(sizes);
  return Autoscaler::make(std::move(options)).value();
}

}  // namespace

TEST_CASE("wrong options are refused with a message that names them") {
  Options options;
  options.policy = "greedy";
  options.limits.max = 4;
  CHECK(Autoscaler::make(options).error().text ==
        "unknown policy 'greedy'; the known ones are fixed, throughput, throughput-walk, fit, "
        "goodput, utility, budget, deadline, exec");
  for (const char* policy : {"utility", "budget", "deadline"}) {
    options.policy = policy;
    CHECK(Autoscaler::make(options).error().text ==
          fmt::format("the policy {0} needs a {0}; give one", policy));
  }
  options.policy = "fixed";
  options.limits.min = 5;
  CHECK(Autoscaler::make(options).error().text ==
        "the limits 5:4 hold no size; use 1 <= MIN <= MAX");
  options.limits.min = 0;
  CHECK(Autoscaler::make(options).has_error());
}

TEST_CASE("a throughput that changes with the shares is not taken for a drift") {
  const auto knee = [](double factor) {
    return
        [factor](int k) { return factor * (1000.0 * std::min(k, 4) + 10.0 * std::max(0, k - 4)); };
  };
  for (const char* policy : {"throughput", "fit"})
    for (const bool told : {true, false}) {
      CAPTURE(policy);
      CAPTURE(told);
      FakeJob job(make(policy, 0, 1, 8, {1, 2, 4, 8}), knee(1), 4);
      job.run(10min);
      REQUIRE(job.size == 4);
      if (told) job.give_other_shares(knee(1.3));
      job.curve = knee(1.3);
      job.run(10min);
      CHECK(job.size == 4);
      const bool drift = std::ranges::any_of(job.reasons, [](const std::string& reason) {
        return reason.find("looked at anew") != std::string::npos;
      });
      CHECK(drift != told);
    }
}

TEST_CASE("the fixed policy goes to its target size and stays there") {
  struct Case {
    const char* what;
    int target, size;
    std::vector<int> sizes;
    Action action;
    int goal;
    const char* reason;
  };
  const Case cases[] = {
      {"there", 4, 4, {2, 4, 8}, Action::stay, 4, "4 workers run, as asked for"},
      {"below",
       4,
       2,
       {2, 4, 8},
       Action::grow,
       4,
       "2 workers run, of the 4 asked for: growing to 4"},
      {"above",
       4,
       8,
       {2, 4, 8},
       Action::shrink,
       4,
       "8 workers run, of the 4 asked for: shrinking to 4"},
      {"all",
       0,
       2,
       {2, 4, 8},
       Action::grow,
       8,
       "2 workers run, of 8 that are possible: growing to 8"},
      {"not to be had",
       6,
       2,
       {2, 4, 8},
       Action::grow,
       4,
       "2 workers run, of the 6 asked for: growing to 4"},
      {"nearer already",
       6,
       5,
       {2, 4, 8},
       Action::stay,
       5,
       "5 workers run, of the 6 asked for: no size nearer to it is possible"},
      {"too small to be had",
       1,
       8,
       {2, 4, 8},
       Action::shrink,
       2,
       "8 workers run, of the 1 asked for: shrinking to 2"},
      {"outside of what can be had",
       4,
       12,
       {2, 4, 8},
       Action::shrink,
       8,
       "12 run but more than 8 cannot be, shrinking to it"},
      {"fewer than the minimum",
       4,
       1,
       {2, 4, 8},
       Action::grow,
       2,
       "1 run but fewer than 2 cannot be, growing to it"},
      {"nothing to be had", 4, 2, {}, Action::stay, 2, "no size between 1 and 16 can be had"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Autoscaler scaler = make("fixed", c.target, 1, 16, c.sizes);
    scaler.world_changed(Generation(1), c.size, 0, start);
    const Decision made = scaler.decide(start + 10s);
    CHECK(made.action == c.action);
    CHECK(made.target == c.goal);
    CHECK(made.reason == c.reason);
  }
}

TEST_CASE("no decision is made before there is a world, during a change, or while settling") {
  Autoscaler scaler = make("fixed", 4, 1, 16, {2, 4});
  CHECK(scaler.decide(start).reason == "no world yet");
  CHECK(scaler.wake_at() == never);
  scaler.world_changed(Generation(1), 2, 0, start);
  CHECK(scaler.wake_at() < start);
  CHECK(scaler.decide(start + 1s).reason == "settling for 10.0 s after the last change");
  CHECK(scaler.wake_at() == start + 10s);
  CHECK(scaler.decide(start + 9s).action == Action::stay);
  CHECK(scaler.decide(start + 10s).action == Action::grow);
  // nothing was done about it yet, so it is repeated
  CHECK(scaler.decide(start + 11s).action == Action::grow);
  scaler.change_started(start + 11s);
  scaler.change_started(start + 11s);
  CHECK(scaler.decide(start + 60s).reason == "a change is under way");
  scaler.world_changed(Generation(2), 4, 0, start + 61s);
  scaler.change_ended(start + 62s);
  CHECK(scaler.decide(start + 62s).reason == "settling for 10.0 s after the last change");
  CHECK(scaler.wake_at() == start + 72s);
  CHECK(scaler.decide(start + 72s).reason == "4 workers run, as asked for");
  CHECK(scaler.wake_at() == never);
}

TEST_CASE("a size that could not be reached is tried again at growing intervals") {
  FakeJob job(
      make("fixed", 4, 1, 16, {2, 4}), [](int k) { return 1000.0 * k; }, 2);
  int tries = 0;
  job.can_have = [&](int) {
    ++tries;
    return false;
  };
  job.run(25s);
  CHECK(tries == 1);
  CHECK(
      job.reasons.back() ==
      "4 could not be reached, next try 20.0 s after the last (2 workers run, of the 4 asked for: "
      "growing to 4)");
  job.run(35s);
  CHECK(tries == 2);
  job.run(10min);  // 40 + 80 + 160 + 320 s
  CHECK(tries <= 6);
  job.can_have = [](int) { return true; };
  job.run(12min);
  CHECK(job.size == 4);
}

TEST_CASE("the fixed policy follows the sizes that are available") {
  FakeJob job(
      make("fixed", 0, 2, 8, {1, 2, 4}), [](int k) { return 1000.0 * k; }, 2);
  job.run(1min);
  CHECK(job.path() == "4");
  job.scaler.offers_changed({{16}, {8}, {1}, {8}, {2}},
                            job.now);  // unsorted, with a duplicate and sizes outside the limits
  job.run(1min);
  CHECK(job.path() == "4 8");
  job.lose_to(7);
  job.scaler.offers_changed({{2}, {4}, {6}, {7}}, job.now);
  job.run(1min);
  CHECK(job.size == 7);
  job.scaler.offers_changed({{2}, {4}}, job.now);
  job.run(1min);
  CHECK(job.size == 4);
}

TEST_CASE("the first world's batch is the base batch when none is given") {
  Options options;
  options.limits.max = 16;
  options.batch = {.max_batch = 256, .batch = 32};
  Autoscaler scaler = Autoscaler::make(options).value();
  CHECK(scaler.plan(2, {}).lr_factor == 1);
  scaler.world_changed(Generation(1), 2, 64, start);
  scaler.world_changed(Generation(2), 4, 128, start);
  CHECK(scaler.plan(4, {}).global_batch == 128);
  CHECK(scaler.plan(4, {}).lr_factor == doctest::Approx(2));
  scaler.batch_rule_changed({.max_batch = 256, .batch = 32, .base_batch = 32});
  CHECK(scaler.plan(16, {}).lr_factor == doctest::Approx(8));
}

TEST_CASE("after a loss the job returns to the size it had found, in one move") {
  const auto knee = [](int k) { return 1000.0 * std::min(k, 4) + 10.0 * std::max(0, k - 4); };
  FakeJob job(make("throughput", 0, 1, 16, {1, 2, 4, 8}), knee, 4);
  job.run(5min);
  REQUIRE(job.size == 4);
  const std::size_t before = job.moves.size();
  job.lose_to(3);
  job.run(5min);
  CHECK(job.size == 4);
  CHECK(job.moves.size() == before + 1);
}

TEST_CASE("random jobs keep to limits and settling time, and every decision has a reason") {
  const auto names = Autoscaler::policies();
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const int min = 1 + static_cast<int>(rng.below(4));
    const int max = min + static_cast<int>(rng.below(20));
    std::vector<int> sizes;
    for (int k = min; k <= max; k += 1 + static_cast<int>(rng.below(4))) sizes.push_back(k);
    std::map<int, double> rates;
    double rate = 500;
    for (int k = 1; k <= 40; ++k) rates[k] = rate += 500 * (rng.uniform() - 0.3);
    const int first = sizes[rng.below(sizes.size())];
    std::string policy(names[seed % names.size()]);
    if (policy == "exec") policy += ":any";
    FakeJob job(
        make(policy, 0, min, max, sizes), [&](int k) { return std::max(50.0, rates.at(k)); }, first,
        0.05, seed);
    if (seed % 2 == 0) job.left = 4e6;
    job.can_have = [&](int) { return !rng.chance(0.2); };
    job.answer = [&](const Question&) {
      return Advice{static_cast<int>(rng.below(static_cast<std::uint64_t>(max) + 3)), "at random"};
    };
    for (int part = 0; part < 10; ++part) {
      job.run(2min);
      if (rng.chance(0.3)) job.lose_to(std::max(1, job.size - 1));
      if (rng.chance(0.2)) rates[job.size] *= 0.5 + rng.uniform();
    }
    CHECK(job.at_once == 0);
    CHECK((job.answers_followed > 0) == (policy == "exec:any"));
    for (std::size_t i = 0; i < job.moves.size(); ++i) {
      const FakeJob::Move& move = job.moves[i];
      CHECK(std::binary_search(sizes.begin(), sizes.end(), move.to));
      CHECK(move.to != move.from);
      CHECK_FALSE(move.reason.empty());
      if (i > 0) CHECK(move.at - job.moves[i - 1].at >= 10s);
    }
    for (const std::string& reason : job.reasons) {
      CHECK_FALSE(reason.empty());
      CHECK(reason.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("any batch that a program names is handled without overflow") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  struct Case {
    BatchRule said;
    std::int64_t of_four;  // global batch with four workers
  };
  const Case cases[] = {{{.batch = 8}, 32},
                        {{.batch = -8}, 0},
                        {{.batch = 8, .base_batch = -1}, 32},
                        {{.max_batch = -1, .batch = 8}, 32},
                        {{.batch = huge}, most_global_batch},
                        {{.max_batch = huge}, most_global_batch},
                        {{.max_batch = huge, .batch = huge / 2}, most_global_batch}};
  for (const Case& c : cases) {
    CAPTURE(c.said.batch);
    Autoscaler scaler = make("fit", 0, 1, 16, {2, 4});
    scaler.batch_rule_changed(c.said);
    const BatchPlan plan = scaler.plan(4, {});
    CHECK(plan.global_batch == c.of_four);
    CHECK(plan.lr_factor == 1);
    scaler.world_changed(Generation(1), 4, plan.global_batch, start);
    CHECK(scaler.decide(start + 10s).action == Action::stay);
  }
}

TEST_CASE("a price that is not a positive number is ignored") {
  Autoscaler scaler = make("fixed", 0, 1, 4, {});
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double price : {infinite, -infinite, std::nan(""), 0.0, -1.0}) {
    scaler.offers_changed({{.size = 4, .price = price}}, start);
    scaler.world_changed(Generation(1), 4, 0, start);
    CHECK(scaler.spent(start + 1h) == doctest::Approx(4));
  }
}

TEST_CASE("a new price does not change what was spent before") {
  Autoscaler scaler = make("fixed", 0, 1, 4, {});
  scaler.offers_changed({{.size = 4, .price = 10}}, start);
  scaler.world_changed(Generation(1), 4, 0, start);
  CHECK(scaler.spent(start + 1h) == doctest::Approx(10));
  scaler.offers_changed({{.size = 4, .price = 1}}, start + 1h);
  CHECK(scaler.spent(start + 1h) == doctest::Approx(10));
  CHECK(scaler.spent(start + 2h) == doctest::Approx(11));
}
