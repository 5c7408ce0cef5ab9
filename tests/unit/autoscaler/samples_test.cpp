// Rounds: which reports count, which do not, and how little a bad round moves the mean.
#include "autoscaler/samples.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "base/rng.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

const Time begin{};

// Ten steps in a second with 25 samples per step for this worker, computing half of the time.
WorkerSample sample(unsigned worker, unsigned generation, double speed = 1) {
  return {.worker = WorkerId(worker),
          .generation = Generation(generation),
          .step = StepId(10),
          .steps = 10,
          .samples = 250,
          .wall = Duration(static_cast<std::int64_t>(1e9 / speed)),
          .compute = Duration(static_cast<std::int64_t>(0.5e9 / speed))};
}

// A world of `size` workers that have all sent their first report, which does not count.
Window primed(int size, std::int64_t batch, unsigned generation = 1) {
  Window window;
  window.world_changed(Generation(generation), size, batch);
  for (int w = 1; w <= size; ++w) CHECK_FALSE(window.add(sample(w, generation), begin));
  return window;
}

}  // namespace

TEST_CASE("the step of a round is the newest one, whichever worker completes the round") {
  Window window = primed(2, 100);
  const auto at = [](unsigned worker, std::int64_t step) {
    WorkerSample report = sample(worker, 1);
    report.step = StepId(step);
    return report;
  };
  window.add(at(1, 30), begin + 1s);
  CHECK(window.add(at(2, 20), begin + 1s)->step == StepId(30));
  window.add(at(2, 21), begin + 2s);
  CHECK(window.add(at(1, 31), begin + 2s)->step == StepId(31));
}

TEST_CASE("a round is whole when every member has reported") {
  Window window = primed(4, 100);
  CHECK_FALSE(window.add(sample(1, 1), begin + 1s));
  CHECK_FALSE(window.add(sample(3, 1), begin + 1s));
  // second report of this worker: counts into the same round
  CHECK_FALSE(window.add(sample(1, 1), begin + 2s));
  CHECK_FALSE(window.add(sample(2, 1), begin + 2s));
  const auto round = window.add(sample(4, 1), begin + 3s);
  REQUIRE(round);
  CHECK(round->samples_per_s == doctest::Approx(1000));
  CHECK(round->batch == doctest::Approx(100));
  CHECK(round->size == 4);
  CHECK(round->steps == 10);
  CHECK(milliseconds(round->step_time) == doctest::Approx(100));
  CHECK(milliseconds(round->compute_time) == doctest::Approx(50));
  const auto curve = window.curve();
  REQUIRE(curve.size() == 1);
  CHECK(curve[0].size == 4);
  CHECK(curve[0].rounds == 1);
  CHECK(curve[0].steps == 10);
  CHECK(curve[0].visits == 1);
  CHECK(curve[0].at == begin + 3s);
}

TEST_CASE("a round does not wait for ever for a silent worker") {
  for (const std::int64_t batch : {100, 0}) {  // batch known, or the sum of the shares reported
    CAPTURE(batch);
    Window window = primed(4, batch);
    for (int turn = 1; turn <= 2; ++turn)
      for (unsigned w = 1; w <= 3; ++w) CHECK_FALSE(window.add(sample(w, 1), begin + 1s));
    const auto round = window.add(sample(1, 1), begin + 3s);
    REQUIRE(round);
    CHECK(round->samples_per_s == doctest::Approx(1000));
  }
  Window window = primed(4, 100);  // a report of one member in four is not enough
  for (int turn = 0; turn < 20; ++turn) CHECK_FALSE(window.add(sample(1, 1), begin + 1s));
}

TEST_CASE("one bad clock does not change the step time") {
  Window window = primed(3, 75);
  window.add(sample(1, 1), begin + 1s);
  window.add(sample(2, 1), begin + 1s);
  const auto round = window.add(sample(3, 1, 50), begin + 1s);
  REQUIRE(round);
  CHECK(round->samples_per_s == doctest::Approx(750));
}

TEST_CASE("some reports do not count") {
  struct Case {
    const char* what;
    WorkerSample sample;
  };
  WorkerSample old = sample(2, 0), sign_of_life = sample(2, 1), no_time = sample(2, 1),
               negative = sample(2, 1), backwards = sample(2, 1);
  sign_of_life.steps = 0;
  no_time.wall = Duration::zero();
  negative.samples = -1;
  backwards.steps = -3;
  const Case cases[] = {{"another world", old},
                        {"a sign of life", sign_of_life},
                        {"no wall time", no_time},
                        {"negative samples", negative},
                        {"negative steps", backwards}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Window window = primed(2, 50);
    CHECK_FALSE(window.add(sample(1, 1), begin));
    CHECK_FALSE(window.add(c.sample, begin));
    CHECK(window.add(sample(2, 1), begin));
  }
  Window none;
  CHECK_FALSE(none.add(sample(1, 0), begin));
  Window empty = primed(1, 0);
  WorkerSample nothing = sample(1, 1);
  nothing.samples = 0;
  CHECK_FALSE(empty.add(nothing, begin));
  CHECK(empty.curve().empty());
}

TEST_CASE("a report with impossible values is ignored") {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  struct Case {
    const char* what;
    std::int64_t steps, samples, wall_ns, compute_ns;
  };
  const Case cases[] = {{"steps", huge, 250, 1'000'000'000, 1},
                        {"samples", 10, huge, 1'000'000'000, 1},
                        {"time", 10, 250, huge, 1},
                        {"compute", 10, 250, 1'000'000'000, huge},
                        {"all", huge, huge, huge, huge}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    WorkerSample odd = sample(2, 1);
    odd.steps = c.steps;
    odd.samples = c.samples;
    odd.wall = Duration(c.wall_ns);
    odd.compute = Duration(c.compute_ns);
    CHECK(implausible(odd));
    Window window = primed(2, 50);
    for (int again = 0; again < 3; ++again) CHECK_FALSE(window.add(odd, begin));
    CHECK_FALSE(window.add(sample(2, 1), begin));
    const auto round = window.add(sample(1, 1), begin);
    REQUIRE(round);
    CHECK(round->samples_per_s == doctest::Approx(500));
  }
  CHECK_FALSE(implausible(sample(1, 1)));
}

TEST_CASE("a step that takes no time makes no round") {
  Window window = primed(1, 25);
  WorkerSample instant = sample(1, 1);
  instant.steps = 1000;
  instant.wall = Duration(1);
  CHECK_FALSE(window.add(instant, begin));
  CHECK(window.curve().empty());
  CHECK(window.add(sample(1, 1), begin));
  const Measure measure = window.curve().front();
  CHECK(measure.compute_share == doctest::Approx(0.5));
  CHECK(measure.all_samples_per_s == doctest::Approx(250));
}

TEST_CASE("reports during a change do not count, nor does the first one after it") {
  Window window = primed(1, 25);
  CHECK(window.add(sample(1, 1), begin + 1s));
  window.change_started();
  CHECK_FALSE(window.add(sample(1, 1), begin + 2s));
  window.change_ended();
  CHECK_FALSE(window.add(sample(1, 1), begin + 3s));
  CHECK(window.add(sample(1, 1), begin + 4s));
  CHECK(window.curve()[0].rounds == 2);
}

TEST_CASE("a new visit to a size starts without rounds, and is counted") {
  Window window = primed(1, 25);
  window.add(sample(1, 1), begin + 1s);
  window.world_changed(Generation(2), 2, 50);
  // what was measured is kept while the job runs at another size
  REQUIRE(window.curve().size() == 1);
  window.world_changed(Generation(3), 1, 25);
  CHECK(window.curve().empty());
  window.add(sample(1, 3), begin + 5s);
  window.add(sample(1, 3, 2), begin + 6s);
  REQUIRE(window.curve().size() == 1);
  CHECK(window.curve()[0].visits == 2);
  CHECK(window.curve()[0].samples_per_s == doctest::Approx(500));
}

TEST_CASE("slow rounds do not move the mean while they are fewer than a quarter") {
  Window window = primed(1, 25);
  for (int i = 0; i < 40; ++i) window.add(sample(1, 1, i % 5 == 2 ? 0.1 : 1), begin + 1s * i);
  const Measure measure = window.curve()[0];
  CHECK(measure.samples_per_s == doctest::Approx(250).epsilon(0.001));
  CHECK(measure.rounds == 40);
}

TEST_CASE("the mean forgets old rounds, and its error tells how well it is known") {
  Window window = primed(1, 25);
  for (int i = 0; i < 3; ++i) window.add(sample(1, 1), begin);
  CHECK(window.curve()[0].error == doctest::Approx(0.05));  // too few rounds for a smaller error
  for (std::size_t i = 0; i < Window::capacity; ++i) window.add(sample(1, 1, 2), begin + 1s);
  CHECK(window.curve()[0].samples_per_s == doctest::Approx(500));
  CHECK(window.curve()[0].error == doctest::Approx(0.005));

  // The true value lies within three errors for nearly every seed.
  int outside = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    Window noisy = primed(1, 25);
    for (int i = 0; i < 40; ++i) noisy.add(sample(1, 1, 0.9 + 0.2 * rng.uniform()), begin + 1s * i);
    const Measure measure = noisy.curve()[0];
    CHECK(measure.error < 0.03);
    if (std::abs(measure.samples_per_s / 250 - 1) > 3 * measure.error) ++outside;
  }
  CHECK(outside < 15);
}

TEST_CASE("a round from a simulator follows the rules of a report") {
  Window window;
  const WorldSample round{.generation = Generation(1),
                          .size = 2,
                          .steps = 10,
                          .samples_per_s = 500,
                          .batch = 50,
                          .step_time = 100ms,
                          .compute_time = 25ms};
  CHECK_FALSE(window.add(round, begin));  // no world
  window.world_changed(Generation(1), 2, 50);
  CHECK_FALSE(window.add(round, begin));  // the first round after a change
  CHECK(window.add(round, begin + 1s));
  WorldSample slow = round;
  slow.samples_per_s = 250;
  slow.step_time = 200ms;
  CHECK(window.add(slow, begin + 2s));
  slow.generation = Generation(2);
  CHECK_FALSE(window.add(slow, begin + 3s));
  window.change_started();
  CHECK_FALSE(window.add(round, begin + 4s));
  REQUIRE(window.curve().size() == 1);
  const Measure measure = window.curve().front();
  CHECK(measure.steps == 20);
  CHECK(measure.compute_share == doctest::Approx(0.5 / 3));
  // weighted by time, not by round
  CHECK(measure.all_samples_per_s == doctest::Approx(1000.0 / 3));

  // A visit starts without rounds; the totals over all visits continue.
  window.change_ended();
  window.world_changed(Generation(3), 2, 50);
  slow.generation = Generation(3);
  CHECK_FALSE(window.add(slow, begin + 5s));
  CHECK(window.add(slow, begin + 6s));
  CHECK(window.curve().front().steps == 10);
  CHECK(window.curve().front().samples_per_s == doctest::Approx(250));
  CHECK(window.curve().front().all_steps == 30);
  CHECK(window.curve().front().all_samples_per_s == doctest::Approx(300));
}
