// Simulated jobs: sums that can be done by hand, reproducibility, and what the policies achieve.
#include "simulate/what_if/what_if.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/rng.hpp"
#include "simulate/what_if/one_size.hpp"

using namespace elasticrun;
using namespace elasticrun::simulate::what_if;
using namespace std::chrono_literals;

namespace {

Curve curve(const std::string& text) { return Curve::parse(text, "curve").value(); }

Curve file(const std::string& name) {
  std::ifstream in(std::string(CURVES) + "/" + name + ".curve");
  return curve({std::istreambuf_iterator<char>(in), {}});
}

// 100 samples/s with a batch of 10: steps of 0.1 s with 1 worker and 0.05 s with 2.
Curve two() {
  return curve("samples: 10000\nmax-batch: 10\ncolumns: size samples/s\n1 100\n2 200\n");
}

Outcome run(const Curve& on, const Conditions& conditions, const std::string& policy, int start,
            std::uint64_t seed = 1) {
  Question question;
  question.policy = policy;
  question.start = start;
  question.seed = seed;
  return answer(on, conditions, question).value();
}

}  // namespace

TEST_CASE("time and cost of a job at one size add up") {
  const Outcome outcome = run(two(), {.price = 3600}, "fixed", 2);
  CHECK(outcome.done);
  CHECK(outcome.seconds == doctest::Approx(50));
  CHECK(outcome.worker_seconds == doctest::Approx(100));
  CHECK(outcome.cost == doctest::Approx(100));
  CHECK(outcome.moves.empty());
  CHECK(outcome.size == 2);
  const Outcome still = at_one_size(two(), {.price = 3600}, Question{}, 2);
  CHECK(outcome.seconds == doctest::Approx(still.seconds));
  CHECK(outcome.weighed_seconds == doctest::Approx(still.weighed_seconds));
  CHECK(outcome.cost == doctest::Approx(still.cost));
}

TEST_CASE("a change costs its idle time, and a start costs money while training continues") {
  const Outcome outcome = run(two(), {.start = 10s, .idle = 1s}, "throughput", 1);
  REQUIRE(outcome.moves.size() == 1);
  CHECK(outcome.moves[0].at == Time{} + 10s);
  CHECK(outcome.size == 2);
  // 20 s with 1 worker, 1 s idle, and the other 8000 samples with 2 workers.
  CHECK(outcome.moved_s == doctest::Approx(21));
  CHECK(outcome.seconds == doctest::Approx(20 + 1 + 40));
  CHECK(outcome.worker_seconds == doctest::Approx(10 + 2 * (10 + 1 + 40)));
}

TEST_CASE("goodput learns faster than fit, with a batch that grows with the noise") {
  const Curve on = file("noisy-gradients");
  const Conditions noisy{.noise = 0.2, .start = 31s, .idle = 500ms};
  const Outcome fit = run(on, noisy, "fit", 24);
  const Outcome goodput = run(on, noisy, "goodput", 24);
  CHECK(fit.global_batch == on.global_batch(24));
  CHECK(goodput.seconds < 0.8 * fit.seconds);
  CHECK(goodput.samples < 0.8 * fit.samples);
  REQUIRE(goodput.moves.size() >= 2);
  CHECK(goodput.moves[0].global_batch < fit.global_batch);
  CHECK(goodput.global_batch > goodput.moves[1].global_batch);
  const Question question{.policy = "goodput"};
  const int best = best_size(on, noisy, question);
  CHECK(goodput.seconds < 1.05 * at_one_size(on, noisy, question, best).seconds);
}

TEST_CASE("the outcome is determined by the seed") {
  const Conditions noisy{.noise = 0.2, .start = 31s, .idle = 500ms, .failures_per_hour = 0.5};
  const Curve on = file("cifar10");
  const Outcome one = run(on, noisy, "fit", 24, 7);
  const Outcome again = run(on, noisy, "fit", 24, 7);
  const Outcome other = run(on, noisy, "fit", 24, 8);
  CHECK(one.seconds == again.seconds);
  CHECK(one.moves.size() == again.moves.size());
  CHECK(one.seconds != other.seconds);
}

TEST_CASE("noise has the given mean and spread") {
  // One step makes one round.
  const Curve on = curve("samples: 20000\nmax-batch: 10\ncolumns: size samples/s\n1 10\n");
  const Outcome quiet = run(on, {}, "fixed", 1);
  double sum = 0;
  double squares = 0;
  constexpr int runs = 100;
  for (int seed = 1; seed <= runs; ++seed) {
    const double ratio =
        run(on, {.noise = 0.2}, "fixed", 1, static_cast<std::uint64_t>(seed)).seconds /
        quiet.seconds;
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / runs;
  const double deviation = std::sqrt(squares / runs - mean * mean);
  CHECK(mean == doctest::Approx(1).epsilon(0.001));
  CHECK(deviation == doctest::Approx(0.2 / std::sqrt(2000)).epsilon(0.2));
}

TEST_CASE("failed hosts are replaced, and their number matches the given rate") {
  const Curve on = curve(
      "samples: 1e12\nbatch: 32\nslots-per-host: 8\nlaw: 0.05 0.002 0 0 0.01 0\nsizes: 800\n");
  const Conditions failing{.start = 60s,
                           .idle = 1s,
                           .limit = std::chrono::hours(6),
                           .failures_per_hour = 0.04,
                           .recovery = 5s};
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = run(on, failing, "fixed", 800, seed);
    CHECK_FALSE(outcome.done);
    CHECK(outcome.moves.empty());
    failures += outcome.failures;
    CHECK(outcome.samples < 6 * 3600 * on.samples_per_s(800));
    CHECK(outcome.samples > 0.98 * 6 * 3600 * on.samples_per_s(800));
  }
  // 100 hosts x 6 h x 0.04 x 20 seeds = 480.
  CHECK(failures == doctest::Approx(480).epsilon(0.15));
}

TEST_CASE("when the only host fails, the state and the job are lost") {
  const Curve on = curve("samples: 1e5\nbatch: 10\ncolumns: size samples/s\n1 10\n");
  const Outcome outcome = run(on, {.failures_per_hour = 2}, "fixed", 1, 3);
  CHECK_FALSE(outcome.done);
  CHECK(outcome.failures == 1);
  CHECK(outcome.reason == "state lost: the last host was lost");
}

TEST_CASE("a host with its own price costs that, and a size uses the first slots") {
  const Curve on = curve(
      "samples: 3600\nhosts: dear price=5\nhosts: cheap price=2\nhosts: usual\n"
      "columns: size samples/s\n1 1\n2 2\n3 3\n");
  CHECK(run(on, {.price = 1}, "fixed", 1).cost == doctest::Approx(5));
  CHECK(run(on, {.price = 1}, "fixed", 2).cost == doctest::Approx(3.5));
  CHECK(run(on, {.price = 1}, "fixed", 3).cost == doctest::Approx(8.0 / 3));
  CHECK(at_one_size(on, {.price = 1}, Question{}, 2).cost == doctest::Approx(3.5));
}

TEST_CASE("a deadline: the best size for it, whether it is met, and when it is given up") {
  Question question;
  question.policy = "deadline";
  question.start = 1;
  question.aims.deadline = 90s;
  CHECK(best_size(two(), {}, question) == 2);
  const Outcome kept = answer(two(), {}, question).value();
  CHECK(kept.met == true);
  CHECK_FALSE(kept.refused_s);
  question.aims.deadline = 30s;
  const Outcome broken = answer(two(), {}, question).value();
  CHECK(broken.met == false);
  REQUIRE(broken.refused_s);
  CHECK(*broken.refused_s < broken.seconds);
  question.aims.deadline = 200s;
  CHECK(best_size(two(), {.price = 1}, question) == 1);
  CHECK_FALSE(run(two(), {}, "fit", 1).met);
}

TEST_CASE("impossible questions are refused") {
  Question question;
  question.policy = "fixed";
  question.start = 3;
  CHECK(answer(two(), {}, question).error().text == "3 is none of the sizes of the curve (1 to 2)");
  question = {.policy = "greedy"};
  CHECK(answer(two(), {}, question).has_error());
}

TEST_CASE("fit finds the best size of random laws") {
  Rng rng(5);
  int good = 0;
  std::size_t moves = 0;
  constexpr int runs = 100;
  for (int i = 0; i < runs; ++i) {
    const auto ms = [&](double most) { return most * rng.uniform() / 1000; };
    const std::string cap = rng.chance(0.5) ? "max-batch: 512\n" : "";
    const Curve on =
        curve(fmt::format("samples: 1e8\nbatch: 64\n{}slots-per-host: 8\nlaw: {} {} {} {} {} {}\n"
                          "sizes: 1 2 4 8 16 24 32\n",
                          cap, ms(20), ms(2), ms(10), ms(1), ms(200), ms(5)));
    const std::vector<int>& sizes = on.sizes();
    const int start = sizes[rng.below(sizes.size())];
    const Outcome outcome =
        run(on, {.noise = 0.2, .start = 31s, .idle = 500ms, .limit = std::chrono::hours(1)}, "fit",
            start, rng.next());
    good += worths(on, {}, {.policy = "fit"}).at(outcome.size) >= 0.95;
    moves += outcome.moves.size();
  }
  MESSAGE("within 5 % of the best size: ", good, " of ", runs, "; moves: ", moves);
  CHECK(good >= runs * 95 / 100);
  CHECK(moves <= 4 * runs);
}

TEST_CASE("an advisor is asked, and its first mistake ends the simulation") {
  Question question;
  question.policy = "exec:./policy.sh";
  question.start = 1;
  question.advisor = [](const autoscaler::Question& asked) {
    return autoscaler::Advice{asked.snapshot.curve.empty() ? 1 : 2, "two are two"};
  };
  const Outcome outcome = answer(two(), {.start = 10s, .idle = 1s}, question).value();
  REQUIRE(outcome.moves.size() == 1);
  CHECK(outcome.moves[0].reason == "growing from 1 to 2: two are two");
  CHECK(outcome.size == 2);

  int times = 0;
  question.advisor = [&](const autoscaler::Question&) {
    return autoscaler::Advice{7 + ++times, ""};
  };
  CHECK(answer(two(), {}, question).error().text ==
        "--policy exec:./policy.sh: asked for a size that cannot be had: 8 is none of the sizes "
        "from 1 to 2");
  CHECK(times == 1);
  question.advisor = Question{}.advisor;
  CHECK(answer(two(), {}, question).error().text ==
        "--policy exec:./policy.sh: its program is not run here");
}

TEST_CASE("a simulation whose steps never end stops at the time limit") {
  const Curve slow =
      Curve::parse("samples: 100\nmax-batch: 10\ncolumns: size samples/s\n1 1e-300\n2 1e-299\n",
                   "slow")
          .value();
  Question question;
  question.policy = "throughput";
  const Outcome outcome = answer(slow, {.limit = 1h}, question).value();
  CHECK_FALSE(outcome.done);
  CHECK(outcome.seconds >= 3600);
}
