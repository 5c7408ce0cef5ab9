// Pollux's goodput, computed by hand, and the sizes and batches that the policy chooses with it.
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

TEST_CASE("throughput counts while the noise is hardly known, and the reason says so") {
  for (const Snapshot& unknown : {Snapshot{}, with_noise(1, 192, 99)}) {
    CHECK(worth_of(4, 256, 320, unknown) == doctest::Approx(320));
    CHECK(goodput()->sense(unknown, {.min_gain = 0.1}) ==
          "at a weight of 0.10 on workers, for the noise of the gradients is not known yet");
  }
  CHECK(goodput()->sense(with_noise(1, 192, 100), {.min_gain = 0.1}) ==
        "in goodput at a weight of 0.10 on workers (noise scale 192)");
  CHECK(goodput()->chooses_batch());
}

namespace {

// A step takes a tenth of a second, however large its batch. More workers raise the throughput only
// through a larger batch.
FakeJob job(int start) {
  Options options;
  options.policy = "goodput";
  options.limits.max = 8;
  options.limits.sizes = {1, 2, 4, 8};
  options.batch = {.batch = 100, .base_batch = 100};
  FakeJob made(Autoscaler::make(std::move(options)).value(), nullptr, start);
  made.surface = [](int, std::int64_t batch) { return 10.0 * static_cast<double>(batch); };
  return made;
}

Noise noise_scale(double scale) { return {.square = 1, .variance = scale, .steps = 1000}; }

}  // namespace

TEST_CASE("a size whose larger batch hardly improves goodput is not chosen") {
  FakeJob small = job(1);
  small.gradients = noise_scale(20);  // goodput of two workers: 1.09 times that of one
  small.run(5min);
  CHECK(small.size == 1);
  CHECK(small.reasons.back() ==
        "staying at 1 at batch 100: 1000 samples/s, 2 at batch 200 promise at best 2000 "
        "samples/s, +2 % in goodput at a weight of 0.10 on workers (noise scale 20)");
  // The noise grows while training goes on.
  small.gradients = noise_scale(1e6);
  small.run(10min);
  CHECK(small.size == 8);
}

TEST_CASE("a result found by throughput is judged again once the noise is known") {
  FakeJob unknown = job(1);
  unknown.run(5min);
  CHECK(unknown.size == 8);
  unknown.gradients = noise_scale(10);
  unknown.run(10min);
  CHECK(unknown.size < 4);
}

namespace {

// A step takes 10 ms plus 0.1 ms per sample of a worker, which may have up to 256 samples. With a
// noise scale of 256 samples and a base batch of 64, goodput by size (rows) and batch (columns) is
//        64    128    256    512   1024
//   1  3902   4678   4494
//   2  4848   6776   7232   6085
//   4  5517   8122  10390  10106   8989 (k = 4: G = 1024)
double law(int k, std::int64_t batch) {
  const auto samples = static_cast<double>(batch);
  return samples / (0.01 + 0.0001 * samples / k);
}

FakeJob batch_job(std::vector<int> sizes, int start) {
  Options options;
  options.policy = "goodput";
  options.limits.max = 4;
  options.limits.sizes = std::move(sizes);
  options.batch = {.batch = 256, .base_batch = 64};
  FakeJob made(Autoscaler::make(std::move(options)).value(), nullptr, start);
  made.surface = law;
  return made;
}

double goodput_of(int size, std::int64_t batch, double scale) {
  return law(size, batch) * efficiency(scale, 64, static_cast<double>(batch));
}

}  // namespace

TEST_CASE("size and batch are chosen together") {
  struct Case {
    const char* what;
    double scale;
    int start;
  };
  const Case cases[] = {{"little noise, from the smallest size", 64, 1},
                        {"little noise, from the largest", 64, 4},
                        {"some noise", 256, 1},
                        {"some noise, from the largest", 256, 4},
                        {"nothing but noise", 1e9, 2}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    FakeJob job = batch_job({1, 2, 4}, c.start);
    job.gradients = noise_scale(c.scale);
    job.run(20min);
    CAPTURE(job.path_with_batches());
    double best = 0;
    for (const int k : {1, 2, 4})
      for (std::int64_t batch = 64; batch <= 256 * k; ++batch)
        best = std::max(best, worth(goodput_of(k, batch, c.scale), k, 0.1));
    CHECK(worth(goodput_of(job.size, job.batch, c.scale), job.size, 0.1) >= 0.93 * best);
    CHECK(job.moves.size() <= 6);
  }
}

TEST_CASE("a chosen batch is kept across sizes, and grows with the noise") {
  FakeJob job = batch_job({1, 2, 4}, 4);
  job.gradients = noise_scale(64);
  job.run(20min);
  const std::int64_t chosen = job.batch;
  CHECK(chosen < 1024);
  CHECK(job.scaler.plan(4, {}).global_batch == chosen);
  CHECK(job.scaler.plan(3, {}).global_batch == std::min<std::int64_t>(chosen, 768));
  job.lose_to(3);
  CHECK(job.scaler.plan(4, {}).global_batch == chosen);
  job.gradients = noise_scale(1e6);
  job.run(60min);
  CHECK(job.size == 4);
  CHECK(job.batch > 700);
}

TEST_CASE("a change of the batch alone is explained") {
  FakeJob job = batch_job({4}, 4);
  job.gradients = noise_scale(64);
  job.run(20min);
  REQUIRE(job.path_with_batches() == "4/512 4/256");
  CHECK(job.moves.back().reason ==
        "4 workers at batch 512 bring 22456 samples/s, 4 at batch 256 promise 11432 to 15610, "
        "+9 % in goodput at a weight of 0.10 on workers (noise scale 64): changing to 4 at batch "
        "256 to measure");
}

TEST_CASE("the policy has the noise measured against the base batch") {
  CHECK(job(1).scaler.plan(4, {}).noise_base == 100);
  CHECK_FALSE(job(1).scaler.plan(4, {}).adascale);
}

TEST_CASE("a noise estimate that has just restarted is not believed at once") {
  FakeJob job = batch_job({1, 2, 4}, 4);
  job.gradients = noise_scale(64);
  job.run(20min);
  const auto moves = job.moves.size();
  REQUIRE(job.batch < 1024);
  // One worker has restarted its estimate; the 99 steps that it has are too few.
  job.gradients = Noise{.square = 1, .variance = 1e9, .steps = 99, .biased = true};
  job.run(5min);
  CHECK(job.moves.size() == moves);
  // A scale that is not a number is not believed either.
  job.gradients = Noise{.square = 0, .variance = 0, .steps = 1000};
  job.run(5min);
  CHECK(job.moves.size() == moves);
  job.gradients = Noise{.square = 1, .variance = 1e9, .steps = 100, .biased = true};
  job.run(60min);
  CHECK(job.batch > 700);
}

TEST_CASE("a noise scale that is infinite is described in words") {
  const std::string plain = "in goodput at a weight of 0.10 on workers";
  CHECK(goodput()->sense(with_noise(1, 192, 1000), {}) == plain + " (noise scale 192)");
  CHECK(goodput()->sense(with_noise(0, 1, 1000), {}) == plain + " (nothing but noise is seen)");
}
