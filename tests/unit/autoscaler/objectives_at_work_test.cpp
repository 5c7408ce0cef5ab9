// The search with a deadline, a budget or a utility: the size it ends at, and what it forecasts.
#include <doctest/doctest.h>

#include <cmath>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

// A worker costs 1 per hour.
FakeJob job(const char* policy, Aims aims, FakeJob::Curve curve, double samples, int start,
            double noise = 0, std::uint64_t seed = 1) {
  Options options;
  options.policy = policy;
  options.aims = std::move(aims);
  options.limits.max = 16;
  options.limits.sizes = {1, 2, 4, 8, 16};
  FakeJob made(Autoscaler::make(std::move(options)).value(), std::move(curve), start, noise, seed);
  made.left = samples;
  return made;
}

// 1000, 1741, 3031, 5278, 9190 samples/s: size 1 is the cheapest, 16 the fastest.
double power(int k) { return 1000 * std::pow(k, 0.8); }

double hours(const FakeJob& done) { return seconds(done.now - Time{}) / 3600; }
double cost(const FakeJob& done) { return done.scaler.spent(done.now); }

}  // namespace

// The whole job at one size takes 10, 5.74, 3.30, 1.89 or 1.09 hours, and costs 10, 11.5, 13.2,
// 15.2 or 17.4.
constexpr double samples = 36e6;

TEST_CASE("deadline: the job is in time, and costs no more than at the size that just makes it") {
  struct Case {
    double deadline;  // hours
    int start;
    double most;  // money
  };
  for (const Case c : {Case{4, 1, 13.2},
                       {4, 16, 13.2},
                       {2.5, 8, 15.2},
                       {2.5, 1, 15.2},
                       {12, 8, 10.5},
                       {1.5, 4, 17.4}}) {
    CAPTURE(c.deadline);
    CAPTURE(c.start);
    FakeJob run = job("deadline", {.deadline = Duration(std::llround(c.deadline * 3600e9))}, power,
                      samples, c.start, 0.05);
    run.run(24h);
    CHECK(*run.left <= 0);
    CHECK(hours(run) <= c.deadline);
    CHECK(cost(run) <= 1.02 * c.most);
    REQUIRE(run.forecasts.size() == 1);
    CHECK(run.forecasts.front().met);
    CHECK(static_cast<double>(run.moves.size()) <= 8 + 3 * hours(run));
  }
}

TEST_CASE("budget: the job keeps to it, and is as fast as at the largest size it suffices for") {
  struct Case {
    double budget;
    int start;
    double most;  // hours
  };
  for (const Case c : {Case{14.6, 1, 3.30}, {14.6, 16, 3.30}, {17, 2, 1.89}, {12.7, 8, 5.74}}) {
    CAPTURE(c.budget);
    CAPTURE(c.start);
    FakeJob run = job("budget", {.budget = c.budget}, power, samples, c.start, 0.05);
    run.run(24h);
    CHECK(*run.left <= 0);
    CHECK(cost(run) <= c.budget);
    CHECK(hours(run) <= 1.06 * c.most);
    REQUIRE(run.forecasts.size() == 1);
    CHECK(run.forecasts.front().met);
    CHECK(static_cast<double>(run.moves.size()) <= 8 + 3 * hours(run));
  }
}

TEST_CASE("utility: the job is fast if time is worth much, and cheap if it is worth nothing") {
  const auto end = [](double per_hour) {
    FakeJob run = job("utility", {.utility = {{0s, 20 * per_hour}, {20h, 0}}}, power, samples, 4);
    run.run(20min);
    return run.size;
  };
  // From 8 to 16 workers the job ends 0.80 hours earlier and costs 2.2 more: 2.8 an hour. From 1 to
  // 2 it ends 4.26 hours earlier for 1.5: 0.35 an hour.
  CHECK(end(0) == 1);
  CHECK(end(0.2) == 1);
  CHECK(end(20) == 16);
}

TEST_CASE("a limit that cannot be met is reported as soon as it is known, with what is needed") {
  const auto flat = [](int) { return 1000.0; };  // 10 hours at any size
  SUBCASE("16 workers cannot do in 12 minutes what takes one worker 10 hours") {
    FakeJob run = job("deadline", {.deadline = 12min}, power, samples, 1);
    run.run(2min);
    REQUIRE(run.forecasts.size() == 1);
    CHECK_FALSE(run.forecasts.front().met);
    CHECK(run.forecasts.front().words ==
          "the deadline of 12 m 0 s cannot be met: 34 m 14 s and 9.09 of money needed at best in "
          "all, with 16 workers");
    CHECK(run.forecasts.front().seconds > 12 * 60);
  }
  SUBCASE("a limit that first seems possible is given up after measuring") {
    FakeJob run = job("deadline", {.deadline = 4h}, flat, samples, 2);
    run.run(10min);
    REQUIRE(run.forecasts.size() == 2);
    CHECK(run.forecasts[0].met);
    CHECK_FALSE(run.forecasts[1].met);
    CHECK(run.forecasts[1].words.find("can no longer be met") != std::string::npos);
  }
  SUBCASE("the money does not suffice even for the cheapest size") {
    FakeJob run = job("budget", {.budget = 5}, power, samples, 4);
    run.run(1h);
    REQUIRE_FALSE(run.forecasts.empty());
    CHECK_FALSE(run.forecasts.back().met);
    CHECK(run.size == 1);
  }
}

TEST_CASE("a job that becomes too slow for its deadline is reported once") {
  double slower = 1;
  const auto curve = [&](int k) { return std::min(k, 4) * 1000.0 * slower; };
  // The job takes 2.5 hours with 4 workers.
  FakeJob run = job("deadline", {.deadline = 3h}, curve, samples, 4, 0.02);
  run.run(1h);
  REQUIRE(run.forecasts.size() == 1);
  CHECK(run.forecasts.front().met);
  slower = 0.5;
  run.run(1h);
  REQUIRE(run.forecasts.size() == 2);
  CHECK_FALSE(run.forecasts.back().met);
  CHECK(run.size == 4);
  CHECK(run.reasons.back().find("cannot be met") != std::string::npos);
}

TEST_CASE("without the amount of work there is no forecast, and fit decides") {
  FakeJob run = job("budget", {.budget = 5}, power, samples, 4);
  run.left.reset();
  run.run(10min);
  CHECK(run.forecasts.empty());
  CHECK(run.size == 16);  // as fit would choose
  CHECK(run.reasons.back().find("the work that is left is not known") != std::string::npos);
}
