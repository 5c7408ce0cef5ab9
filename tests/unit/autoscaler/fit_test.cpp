// The fit policy: which sizes it jumps to, how it explains itself, and when it searches again.
#include "autoscaler/fit.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

Autoscaler scaler(std::vector<int> sizes, double min_gain = 0.1) {
  Options options;
  options.policy = "fit";
  options.limits.min = sizes.front();
  options.limits.max = sizes.back();
  options.limits.sizes = std::move(sizes);
  options.limits.min_gain = min_gain;
  return Autoscaler::make(std::move(options)).value();
}

FakeJob::Curve perfect() {
  return [](int k) { return 1000.0 * k; };
}
FakeJob::Curve flat() {
  return [](int) { return 4000.0; };
}
FakeJob::Curve knee(int at) {
  return [at](int k) { return 1000.0 * std::min(k, at) + 10.0 * std::max(0, k - at); };
}

}  // namespace

TEST_CASE("worth peaks where the last worker brings min_gain of an average one") {
  // R = k^0.5: an added worker brings half of a present one everywhere.
  const auto rate = [](int k) { return std::sqrt(static_cast<double>(k)); };
  CHECK(worth(rate(16), 16, 0.5) == doctest::Approx(worth(rate(4), 4, 0.5)));
  CHECK(worth(rate(16), 16, 0.4) > worth(rate(4), 4, 0.4));
  CHECK(worth(rate(16), 16, 0.6) < worth(rate(4), 4, 0.6));
  CHECK(worth(123, 8, 0) == 123);
  CHECK(worth(800, 8, 1) == doctest::Approx(100));
}

TEST_CASE("without noise the policy ends at the best size") {
  const std::vector<int> doubling{1, 2, 4, 8, 16};
  const std::vector<int> all{1, 2, 3, 4, 5, 6, 7, 8};
  struct Case {
    const char* what;
    FakeJob::Curve curve;
    std::vector<int> sizes;
    int start;
    int best;
    std::size_t most;  // moves
  };
  const Case cases[] = {
      {"perfect", perfect(), doubling, 1, 16, 4},
      {"perfect, every size to be had", perfect(), all, 1, 8, 3},
      {"perfect from the top", perfect(), doubling, 16, 16, 2},
      {"flat", flat(), doubling, 4, 1, 3},
      {"flat from below", flat(), doubling, 1, 1, 3},
      {"a knee, from below", knee(4), doubling, 1, 4, 4},
      {"a knee, on it", knee(4), doubling, 4, 4, 4},
      {"a knee, from above", knee(4), doubling, 16, 4, 4},
      {"the only size", perfect(), {4}, 4, 4, 0},
      {"a size that is not on the list", perfect(), {2, 4, 8}, 3, 8, 3},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    FakeJob job(scaler(c.sizes), c.curve, c.start);
    job.run(25min);
    CAPTURE(job.path());
    // Adjacent sizes may be about equally good.
    CHECK(worth(c.curve(job.size), job.size, 0.1) >= 0.93 * worth(c.curve(c.best), c.best, 0.1));
    CHECK(job.moves.size() <= c.most);
  }
}

TEST_CASE("a jump goes at most to double the largest size measured") {
  FakeJob job(scaler({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), perfect(), 1);
  job.run(25min);
  CHECK(job.path() == "2 4 8 16");
  FakeJob gap(scaler({1, 5, 20}), perfect(), 1);  // no size up to that: the next one
  gap.run(25min);
  CHECK(gap.path() == "5 20");
}

TEST_CASE("every decision gives its reason") {
  FakeJob job(
      scaler({4, 8}), [](int k) { return k == 4 ? 4266.0 : 4112.0; }, 4);
  job.run(3min);
  const std::vector<std::string> expected{
      "settling for 10.0 s after the last change",
      "4 workers bring 4266 samples/s, 8 promise 1422 to 8532: growing to 8 to measure",
      "settling for 10.0 s after the last change",
      "4 workers brought 4266 samples/s, 8 bring 4112: 11 % better at a weight of 0.10 on workers, "
      "shrinking to 4",
      "settling for 10.0 s after the last change",
      "staying at 4: 4266 samples/s, 8 brought 4112 samples/s, -10 % at a weight of 0.10 on "
      "workers"};
  for (std::size_t i = 0; i < std::min(job.reasons.size(), expected.size()); ++i)
    CHECK(job.reasons[i] == expected[i]);
  CHECK(job.reasons.size() == expected.size());
  const Decision made = job.scaler.decide(job.now);
  REQUIRE(made.figures.size() == 2);
  CHECK(made.figures[0].name == "samples_per_s");
  CHECK(made.figures[0].value == doctest::Approx(4266));
}

TEST_CASE("min_gain decides between the fastest and the cheapest size") {
  const auto root = [](int k) { return 1000 * std::sqrt(static_cast<double>(k)); };
  FakeJob fastest(scaler({1, 2, 4, 8, 16}, 0), root, 2);
  fastest.run(20min);
  CHECK(fastest.size == 16);
  FakeJob cheapest(scaler({1, 2, 4, 8, 16}, 1), root, 2);
  cheapest.run(20min);
  CHECK(cheapest.size == 1);
}

TEST_CASE("a result is checked again rarely, after hours, and at once after a drift") {
  FakeJob job(scaler({1, 2, 4, 8, 16}), knee(4), 4);
  job.run(25min);
  const std::size_t found = job.moves.size();
  REQUIRE(job.size == 4);
  job.run(24h);
  CHECK(job.size == 4);
  CHECK(job.moves.size() > found);
  CHECK(job.moves.size() <= found + 20);
  const std::size_t before = job.moves.size();
  job.curve = [](int k) { return knee(8)(k) * 1.5; };
  job.run(20min);
  CHECK(job.size == 8);
  REQUIRE(job.moves.size() > before);
  CHECK(job.moves[before].reason.starts_with(
      "4 workers bring 6000 samples/s, no longer 4000: all is looked at anew; "));
}

TEST_CASE("neither a lost worker nor a short slow phase makes the policy leave its size") {
  FakeJob job(scaler({1, 2, 4, 8}), knee(4), 4);
  job.run(25min);
  job.lose_to(3);
  job.run(5min);
  CHECK(job.size == 4);
  const std::size_t before = job.moves.size();
  job.curve = [](int k) { return knee(4)(k) / 2; };
  job.run(15s);
  job.curve = knee(4);
  job.run(10min);
  CHECK(job.moves.size() == before);
}

TEST_CASE("no size is tried when little work is left") {
  FakeJob job(scaler({1, 2, 4}), perfect(), 1);
  job.scaler.progress(15'000);  // samples at 1000/s: 15 s
  job.run(2min);
  CHECK(job.moves.empty());
  job.scaler.progress(500'000'000);
  job.run(5min);
  CHECK(job.size == 4);
}

TEST_CASE("with noise it ends near the best size, and stays") {
  const std::vector<int> sizes{1, 2, 4, 8, 16};
  const std::function<double(int)> curves[] = {
      perfect(), flat(), knee(4), [](int k) { return 9000.0 / (k + 1); },
      [](int k) { return 5040.0 / (0.2 + 4.0 / k + 0.02 * k); }};
  int runs = 0;
  int good = 0;
  for (const auto& curve : curves) {
    double best = 0;
    for (const int size : sizes) best = std::max(best, worth(curve(size), size, 0.1));
    for (const int start : sizes) {
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        FakeJob job(scaler(sizes), curve, start, 0.05, seed);
        job.run(15min);
        ++runs;
        good += worth(curve(job.size), job.size, 0.1) >= 0.9 * best;
        CHECK(job.moves.size() <= 2 * sizes.size());
      }
    }
  }
  CAPTURE(runs);
  CHECK(good * 100 >= runs * 95);
}

TEST_CASE("a verdict about a size that a loss led to is not applied to another size") {
  // Three workers are as good as four, but only four are offered: after a loss the job stays at
  // three.
  const auto curve = [](int k) { return k < 3 ? 1000.0 * k : 4000.0 + 10 * k; };
  FakeJob job(scaler({2, 4, 8}), curve, 4);
  job.run(25min);
  REQUIRE(job.size == 4);
  const std::size_t before = job.moves.size();
  // In the shortest stay, size 3 is judged once, on as many rounds as 4 has when it is judged
  // again.
  for (const Duration stay : {10s, 11s, 15s, 120s}) {
    CAPTURE(stay.count());
    job.lose_to(3);
    job.run(stay);
    CHECK(job.reasons.back().starts_with("staying at 3: "));
    job.lose_to(4);  // the host has come back
    job.run(2min);
    CHECK(job.reasons.back().starts_with("staying at 4: "));
  }
  CHECK(job.moves.size() == before);
}

TEST_CASE("a drift is noticed at the size where the job rests, even if a loss led it there") {
  const auto curve = [](int k) { return k < 3 ? 1000.0 * k : 4000.0 + 10 * k; };
  FakeJob job(scaler({2, 4, 8}), curve, 4);
  job.run(25min);
  job.lose_to(3);
  job.run(2min);
  REQUIRE(job.size == 3);
  job.curve = [&](int k) { return curve(k) / 2; };
  job.run(3min);
  const bool drift = std::ranges::any_of(job.reasons, [](const std::string& reason) {
    return reason.find("3 workers bring 2015 samples/s, no longer 4030") != std::string::npos;
  });
  CHECK(drift);
}
