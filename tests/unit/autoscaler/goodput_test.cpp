// Pollux's goodput, by hand, and what it makes of a size.
#include "autoscaler/goodput.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

Snapshot with_noise(double square, double variance, std::int64_t steps) {
  Snapshot snapshot;
  snapshot.base_batch = 64;
  snapshot.noise = Noise{.square = square, .variance = variance, .steps = steps};
  return snapshot;
}

double worth_of(int size, std::int64_t batch, double samples_per_s, const Snapshot& snapshot) {
  return goodput()->worth({{.size = size, .global_batch = batch}, samples_per_s}, snapshot,
                          {.min_gain = 0});
}

}  // namespace

TEST_CASE("goodput is throughput times efficiency") {
  struct Case {
    const char* what;
    std::int64_t batch;
    double samples_per_s, noise_scale, goodput;
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Case cases[] = {
      {"the base batch", 64, 100, 192, 100},
      // (192 + 64) / (192 + 128) = 0.8.
      {"twice the base batch", 128, 180, 192, 144},
      {"four times", 256, 320, 192, 320 * 256.0 / 448},
      {"no noise: steps count", 256, 320, 0, 80},
      {"nothing but noise: samples count", 256, 320, inf, 320},
      {"a batch that nobody knows", 0, 320, 192, 320},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const double square = c.noise_scale == inf ? 0 : 2;
    const double variance = c.noise_scale == inf ? 1 : 2 * c.noise_scale;
    CHECK(worth_of(4, c.batch, c.samples_per_s, with_noise(square, variance, 1000)) ==
          doctest::Approx(c.goodput));
  }
}

TEST_CASE("workers weigh as they do with throughput") {
  const Snapshot snapshot = with_noise(1, 192, 1000);
  const auto worth_at = [&](double min_gain) {
    return goodput()->worth({{.size = 16, .global_batch = 128}, 180}, snapshot,
                            {.min_gain = min_gain});
  };
  CHECK(worth_at(0.5) == doctest::Approx(144 / 4.0));
  CHECK(worth_at(1) == doctest::Approx(144 / 16.0));
}

TEST_CASE("while little is known of the noise, throughput counts, and it says so") {
  for (const Snapshot& unknown : {Snapshot{}, with_noise(1, 192, 99)}) {
    CHECK(worth_of(4, 256, 320, unknown) == doctest::Approx(320));
    CHECK(goodput()->sense(unknown, {.min_gain = 0.1}) ==
          "at a weight of 0.10 on workers, for the noise of the gradients is not known yet");
  }
  CHECK(goodput()->sense(with_noise(1, 192, 100), {.min_gain = 0.1}) ==
        "in goodput at a weight of 0.10 on workers (noise scale 192)");
  CHECK(goodput()->wants_noise());
}

namespace {

// Twice the workers compute twice the samples, in steps of twice the batch.
FakeJob job(int start) {
  Options options;
  options.policy = "goodput";
  options.limits.max = 8;
  options.limits.sizes = {1, 2, 4, 8};
  options.batch = {.batch = 100, .base_batch = 100};
  return {Autoscaler::make(std::move(options)).value(), [](int k) { return 1000.0 * k; }, start};
}

Noise noise_scale(double scale) { return {.square = 1, .variance = scale, .steps = 1000}; }

}  // namespace

TEST_CASE("a size whose batch teaches hardly more is not gone to") {
  FakeJob small = job(1);
  small.gradients = noise_scale(20);  // two workers: 1.09 of the goodput of one
  small.run(5min);
  CHECK(small.path().empty());
  CHECK(small.reasons.back() ==
        "staying at 1: 1000 samples/s, 2 promise at best 2000 samples/s, +2 % in goodput at a "
        "weight of 0.10 on workers (noise scale 20)");
  // It grows while training goes on.
  small.gradients = noise_scale(1e6);
  small.run(10min);
  CHECK(small.size == 8);
}

TEST_CASE("a search for throughput is judged again when the noise is known") {
  FakeJob unknown = job(1);
  unknown.run(5min);
  CHECK(unknown.size == 8);
  unknown.gradients = noise_scale(10);
  unknown.run(10min);
  CHECK(unknown.size < 4);
}

TEST_CASE("the policy has the noise measured, against the base batch") {
  CHECK(job(1).scaler.plan(4, {}).noise_base == 100);
  CHECK_FALSE(job(1).scaler.plan(4, {}).adascale);
}
