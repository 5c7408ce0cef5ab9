// The estimator computed by hand, its averages, and a problem whose noise is known.
#include "worker/core/noise_scale.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/rng.hpp"

using elasticrun::Rng;
using elasticrun::worker::core::GradientSquares;
using elasticrun::worker::core::NoiseScale;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

double normal(Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.uniform())) *
         std::cos(2 * std::numbers::pi * rng.uniform());
}

using Vector = std::vector<double>;

double square_of(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

// Gradients of samples: `truth` plus normal noise of variance trace / dimensions in each dimension.
struct Problem {
  Vector truth;
  double trace = 0;

  double noise_scale() const { return trace / square_of(truth); }
  // The mean gradient of n samples, drawn directly.
  Vector mean(std::int64_t n, Rng& rng) const {
    const double sigma =
        std::sqrt(trace / static_cast<double>(truth.size()) / static_cast<double>(n));
    Vector g = truth;
    for (double& x : g) x += sigma * normal(rng);
    return g;
  }
  GradientSquares step(const std::vector<std::int64_t>& pieces, Rng& rng) const {
    GradientSquares found{.pieces = static_cast<double>(pieces.size())};
    for (const std::int64_t n : pieces) found.samples += static_cast<double>(n);
    Vector sum(truth.size());
    for (const std::int64_t n : pieces) {
      const Vector g = mean(n, rng);
      const double weight = static_cast<double>(n) / found.samples;
      found.local += weight * square_of(g);
      for (std::size_t i = 0; i < g.size(); ++i) sum[i] += weight * g[i];
    }
    found.total = square_of(sum);
    return found;
  }
};

}  // namespace

TEST_CASE("one step gives these squares and variances") {
  struct Case {
    const char* what;
    GradientSquares squares;
    double base_batch, square, variance;
  };
  const Case cases[] = {
      // (1, 0) and (0, 1): mean of squares 1, square of mean 1/2.
      {"two that are orthogonal", {1, 0.5, 2, 32}, 32, 0, 0.5},
      // (3, 0) and (1, 0): 5 and 4; sqr = 8 - 5, var = 1.
      {"two of a kind", {5, 4, 2, 32}, 32, 3, 1},
      {"at four times the base batch", {5, 4, 2, 128}, 32, 3, 4},
      // (3, 0) of 3 samples and (-1, 0) of one: 7 and 4.
      {"unequal pieces", {7, 4, 2, 4}, 4, 1, 3},
      {"four", {10, 4, 4, 64}, 32, 2, 4},
      {"no noise at all", {4, 4, 3, 32}, 32, 4, 1e-6},
      {"nothing but noise", {4, 1, 3, 32}, 32, 0, 1.5},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    NoiseScale noise;
    noise.observe(c.squares, c.base_batch);
    CHECK(noise.steps == 1);
    CHECK(noise.square() == doctest::Approx(c.square));
    CHECK(noise.variance() == doctest::Approx(c.variance));
  }
}

TEST_CASE("recent steps count more, weighted by their samples") {
  NoiseScale noise;
  noise.observe({5, 4, 2, 32}, 32);  // sqr 3, var 1
  noise.observe({9, 7, 2, 64}, 32);  // sqr 5, var 4
  const double first = 0.001 * 0.999 * 0.999, second = 1 - 0.999 * 0.999;
  CHECK(noise.weight == doctest::Approx(first + second));
  CHECK(noise.square() == doctest::Approx((3 * first + 5 * second) / (first + second)));
  CHECK(noise.variance() == doctest::Approx((1 * first + 4 * second) / (first + second)));
}

TEST_CASE("steps without usable values change nothing") {
  NoiseScale noise;
  noise.observe({5, 4, 2, 32}, 32);
  const NoiseScale before = noise;
  for (const GradientSquares& useless :
       {GradientSquares{inf, 4, 2, 32}, GradientSquares{5, std::nan(""), 2, 32},
        GradientSquares{inf, inf, 2, 32}, GradientSquares{4, 4, 1, 32},
        GradientSquares{0, 0, 0, 32}}) {
    noise.observe(useless, 32);
    CHECK(noise == before);
  }
}

TEST_CASE("biased and unbiased figures are not mixed") {
  NoiseScale noise;
  noise.observe({.local = 50, .total = 30, .pieces = 2, .samples = 32, .biased = true}, 32);
  CHECK(noise.biased);
  noise.observe({5, 4, 2, 32}, 32);
  CHECK_FALSE(noise.biased);
  CHECK(noise.steps == 1);
  CHECK(noise.square() == doctest::Approx(3));
}

TEST_CASE("AdaScale's gain follows from square and variance") {
  struct Case {
    const char* what;
    double local, total, scale, gain;
  };
  const Case cases[] = {
      {"the base batch", 5, 4, 1, 1},
      // var 1, sqr 3: 4 / (1/4 + 3).
      {"four times", 5, 4, 4, 4 / 3.25},
      {"half of it", 5, 4, 0.5, 4.0 / 5},
      {"only noise: all of it", 1, 0.5, 8, 8},
      {"no noise: nothing", 4, 4, 8, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    NoiseScale noise;
    CHECK(noise.gain(c.scale) == 1);
    noise.observe({c.local, c.total, 2, 32}, 32);
    CHECK(noise.gain(c.scale) == doctest::Approx(c.gain).epsilon(1e-5));
  }
}

TEST_CASE("known noise is estimated within a tenth") {
  struct Case {
    const char* what;
    std::vector<std::int64_t> pieces;
    double trace, base_batch;
  };
  const Case cases[] = {
      {"two workers", {32, 32}, 400, 32},
      {"eight workers", std::vector<std::int64_t>(8, 16), 400, 32},
      {"unequal shares", {64, 32, 20, 5}, 400, 32},
      {"one sample beside many", {1, 63}, 400, 64},
      {"much noise", std::vector<std::int64_t>(4, 32), 4000, 32},
      {"little noise", {32, 32}, 40, 32},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const Problem problem{Vector(100, 0.2), c.trace};  // |G|^2 = 4
    Rng rng(5);
    NoiseScale noise;
    for (int step = 0; step < 3000; ++step)
      noise.observe(problem.step(c.pieces, rng), c.base_batch);
    CHECK(noise.square() == doctest::Approx(4).epsilon(0.1));
    CHECK(c.base_batch * noise.variance() == doctest::Approx(c.trace).epsilon(0.1));
    CHECK(c.base_batch * noise.variance() / noise.square() ==
          doctest::Approx(problem.noise_scale()).epsilon(0.1));
  }
}
