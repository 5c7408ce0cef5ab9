// The walk on the curves that Or et al. measured, and on artificial curves that could mislead it.
#include "autoscaler/throughput.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

const std::vector<int> fours{4, 8, 12, 16, 20, 24};
const std::vector<int> eights{32, 40, 48, 56, 64};

FakeJob::Curve from_times(std::map<int, double> total) {
  return [total](int size) { return 5e6 / total.at(size); };
}
// Total times of their static runs, in seconds.
const FakeJob::Curve cifar =
    from_times({{4, 1172}, {8, 1216}, {12, 1305}, {16, 1303}, {20, 1410}, {24, 1408}});
const FakeJob::Curve imagenet =
    from_times({{32, 4550}, {40, 3638}, {48, 3070}, {56, 2742}, {64, 2357}});

FakeJob::Curve perfect() {
  return [](int k) { return 1000.0 * k; };
}
FakeJob::Curve flat() {
  return [](int) { return 4000.0; };
}
FakeJob::Curve knee(int at) {
  return [at](int k) { return 1000.0 * std::min(k, at) + 10.0 * std::max(0, k - at); };
}
FakeJob::Curve negative() {
  return [](int k) { return 9000.0 / (k + 1); };
}

Autoscaler scaler(std::vector<int> sizes) {
  Options options;
  options.limits.min = sizes.front();
  options.limits.max = sizes.back();
  options.limits.sizes = std::move(sizes);
  return Autoscaler::make(std::move(options)).value();
}

}  // namespace

TEST_CASE("without noise the walk takes the expected path") {
  const std::vector<int> doubling{1, 2, 4, 8, 16};
  struct Case {
    const char* what;
    FakeJob::Curve curve;
    std::vector<int> sizes;
    int start;
    const char* path;
  };
  const Case cases[] = {
      {"CIFAR-10 from below", cifar, fours, 4, "8 4"},
      {"CIFAR-10 from the middle", cifar, fours, 12, "16 8 4"},
      {"CIFAR-10 from above", cifar, fours, 24, "20 16 12 8 4"},
      {"ImageNet", imagenet, eights, 32, "40 48 56 64"},
      {"ImageNet from the middle", imagenet, eights, 48, "56 64"},
      {"ImageNet from above", imagenet, eights, 64, "56 64"},
      {"perfect", perfect(), doubling, 1, "2 4 8 16"},
      {"flat", flat(), doubling, 4, "8 2 1"},
      {"flat from below", flat(), doubling, 1, "2 1"},
      {"a knee, from below", knee(4), doubling, 1, "2 4 8 4"},
      {"a knee, on it", knee(4), doubling, 4, "8 2 4"},
      {"a knee, from above", knee(4), doubling, 16, "8 4 2 4"},
      {"negative", negative(), doubling, 2, "4 1"},
      {"the only size", perfect(), {4}, 4, ""},
      {"a size that is not on the list", knee(4), {2, 4, 8}, 3, "4 8 2 4"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    FakeJob job(scaler(c.sizes), c.curve, c.start);
    job.run(25min);
    CHECK(job.path() == c.path);
  }
}

TEST_CASE("every decision gives its reason") {
  const std::string cifar_pair =
      "4 -> 8 workers brought 4266 -> 4112 samples/s, -0.04 of a full worker's worth; not more "
      "than 0.10";
  const std::string middle_pair =
      "12 -> 16 workers brought 3831 -> 3837 samples/s, 0.00 of a full worker's worth; not more "
      "than 0.10";
  FakeJob job(scaler(fours), cifar, 12);
  job.run(10min);
  const std::vector<std::string> expected{
      "settling for 10.0 s after the last change",
      "12 workers bring 3831 samples/s, growing to 16 to compare",
      "settling for 10.0 s after the last change",
      middle_pair + ", shrinking to 8",
      "settling for 10.0 s after the last change",
      "8 -> 12 workers brought 4112 -> 3831 samples/s, -0.14 of a full worker's worth; not more "
      "than 0.10, shrinking to 4",
      "settling for 10.0 s after the last change",
      "staying at 4: " + cifar_pair};
  for (std::size_t i = 0; i < std::min(job.reasons.size(), expected.size()); ++i)
    CHECK(job.reasons[i] == expected[i]);
  CHECK(job.reasons.size() == expected.size());

  const std::map<int, double> rates{{4, 400}, {5, 480}, {6, 570}};
  FakeJob five(
      scaler({4, 5, 6}), [&](int k) { return rates.at(k); }, 4);
  five.run(2min);
  REQUIRE(five.path() == "5 6");
  CHECK(five.moves[1].reason ==
        "4 -> 5 workers brought 400 -> 480 samples/s, 0.80 of a full worker's worth; more than "
        "0.10, growing to 6");
  CHECK(five.reasons.back() ==
        "staying at 6: 5 -> 6 workers brought 480 -> 570 samples/s, 0.94 of a full worker's worth; "
        "more than 0.10, and no larger size can be had");

  FakeJob alone(scaler({4}), perfect(), 4);
  alone.run(1min);
  CHECK(alone.reasons.back() == "staying at 4, the only size that can be had");
}

TEST_CASE("a pair close to the threshold is measured for longer") {
  // 0.095 against 0.10, where each throughput is known to 0.5 % at best.
  const auto close = [](int k) { return 1200.0 * (1 + 0.095 * (k - 12) / 12); };
  FakeJob job(scaler({12, 16}), close, 12);
  job.run(24s);
  REQUIRE(job.path() == "16");
  job.run(8s);
  CHECK(job.reasons.back() == "12 and 16 workers are too close to judge yet: measuring on");
  job.run(10s);
  CHECK(job.path() == "16 12");
}

TEST_CASE("a decision carries its figures") {
  FakeJob job(scaler(fours), cifar, 4);
  job.run(5min);
  const Decision made = job.scaler.decide(job.now);
  CHECK(made.action == Action::stay);
  CHECK(made.target == 4);
  REQUIRE(made.figures.size() == 7);
  const std::vector<const char*> names{"samples_per_s",     "min_gain",           "low", "high",
                                       "low_samples_per_s", "high_samples_per_s", "gain"};
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(made.figures[i].name == names[i]);
  CHECK(made.figures[2].value == 4);
  CHECK(made.figures[3].value == 8);
  CHECK(made.figures[6].value == doctest::Approx(1172.0 / 1216.0 - 1).epsilon(0.001));
}

TEST_CASE("a step that failed is tried again, each time after a longer pause") {
  FakeJob job(scaler({1, 2, 4}), flat(), 1);
  job.run(29min);
  CHECK(job.path() == "2 1");
  job.run(5min);
  REQUIRE(job.path() == "2 1 2 1");
  CHECK(job.moves[2].reason ==
        "2 workers last tried 30 m 0 s ago did not pay; growing to 2 to see whether they do now");
  job.run(53min);  // after the second failure the pause is an hour
  CHECK(job.moves.size() == 4);
  job.run(10min);
  CHECK(job.moves.size() == 6);
  job.run(24h);  // and it is never more than four
  CHECK(job.moves.size() >= 6 + 2 * 5);
  CHECK(job.moves.size() <= 6 + 2 * 7);

  job.curve = perfect();  // now the larger sizes pay
  job.run(5h);
  CHECK(job.size == 4);
}

TEST_CASE("a drift of the throughput restarts the search, but noise does not") {
  FakeJob job(scaler({1, 2, 4, 8}), knee(4), 4);
  job.run(5min);
  REQUIRE(job.size == 4);
  const std::size_t before = job.moves.size();
  job.curve = [](int k) { return knee(4)(k) * 1.08; };
  job.run(5min);
  CHECK(job.moves.size() == before);
  job.curve = [](int k) { return knee(2)(k) * 1.2; };  // the network has become slow
  job.run(10min);
  CHECK(job.size == 2);
  CHECK(
      job.moves[before].reason ==
      "4 workers now bring 2424 samples/s, no longer 4000: all is looked at anew; 4 workers bring "
      "2424 samples/s, growing to 8 to compare");
}

TEST_CASE("no change is made shortly before the end") {
  FakeJob job(scaler({1, 2, 4}), perfect(), 1);
  job.scaler.progress(15'000);  // samples at 1000/s: 15 s
  job.run(2min);
  CHECK(job.moves.empty());
  CHECK(job.reasons.back() == "too little work left to pay for a change");
  job.scaler.progress(5'000'000);
  job.run(2min);
  CHECK(job.size == 4);
}

TEST_CASE("noise of 5 % does not make the size oscillate") {
  struct Case {
    const char* what;
    FakeJob::Curve curve;
    std::vector<int> sizes;
    std::vector<int> ends;  // sizes at which it may settle; empty: not checked for each run
  };
  const std::vector<int> doubling{1, 2, 4, 8, 16};
  const Case cases[] = {
      {"CIFAR-10", cifar, fours, {}},         {"ImageNet", imagenet, eights, {64}},
      {"perfect", perfect(), doubling, {16}}, {"flat", flat(), doubling, {1}},
      {"knee", knee(4), doubling, {4}},       {"negative", negative(), doubling, {1}}};
  int cifar_right = 0;
  int cifar_runs = 0;
  for (const Case& c : cases) {
    for (const int start : c.sizes) {
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(c.what);
        CAPTURE(start);
        CAPTURE(seed);
        FakeJob job(scaler(c.sizes), c.curve, start, 0.05, seed);
        job.run(8min);
        // Once across the list and back is the longest possible walk.
        CHECK(job.moves.size() <= 2 * c.sizes.size());
        const std::size_t moves = job.moves.size();
        job.run(2min);
        CHECK(job.moves.size() == moves);  // settled
        if (!c.ends.empty()) CHECK(std::count(c.ends.begin(), c.ends.end(), job.size) == 1);
        if (c.ends.empty()) {
          ++cifar_runs;
          cifar_right += job.size <= 8;
        }
      }
    }
  }
  // Below 8 workers the curve is so flat that noise may end the way down early.
  MESSAGE("CIFAR-10: ", cifar_right, " of ", cifar_runs, " runs found 4 or 8 workers");
  CHECK(cifar_right * 10 >= cifar_runs * 7);
}

TEST_CASE("hours of noise cause few moves") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    FakeJob job(scaler({1, 2, 4, 8, 16}), knee(4), 4, 0.05, seed);
    job.run(5h);
    CHECK(job.size == 4);
    CHECK(job.moves.size() <= 3 + 2 * 3);  // the walk, then the retries at 8
  }
}

TEST_CASE("an expired verdict is not waited for, which would loop without any delay") {
  // From 8 the walk goes down to 2. After half an hour it tries 4 again, which is too close to 2 to
  // judge, while the measurement of 8 has just expired.
  const auto close = [](int k) { return k < 8 ? 1200.0 * (1 + 0.095 * (k - 2) / 2) : 900.0; };
  FakeJob job(scaler({2, 4, 8}), close, 8);
  job.run(25min);
  REQUIRE(job.path() == "4 2");
  job.run(10min);
  CHECK(job.path() == "4 2 4 2");
  CHECK(std::ranges::count(job.reasons,
                           "2 and 4 workers are too close to judge yet: measuring on") > 1);
  CHECK(job.at_once == 0);
}
