// See noise_scale.hpp.
#include "worker/core/noise_scale.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace elasticrun::worker::core {
namespace {

constexpr double kept = 0.999;  // factor on the old averages when one base batch is added
constexpr double least_variance = 1e-6;

}  // namespace

void NoiseScale::observe(const GradientSquares& squares, double base_batch) {
  ER_CHECK(base_batch > 0 && squares.samples > 0);
  if (squares.pieces < 2 || !std::isfinite(squares.local) || !std::isfinite(squares.total)) return;
  if (steps > 0 && biased != squares.biased) *this = {};
  biased = squares.biased;
  const double scale = squares.samples / base_batch;
  const double others = squares.pieces - 1;
  const double square = (squares.pieces * squares.total - squares.local) / others;
  const double variance = (squares.local - squares.total) * scale / others;
  const double old = std::pow(kept, scale);
  square_sum = old * square_sum + (1 - old) * square;
  variance_sum = old * variance_sum + (1 - old) * variance;
  weight = old * weight + (1 - old);
  ++steps;
}

// The value of a single step may well be negative, so the average is bounded, not the values in it.
double NoiseScale::square() const { return steps == 0 ? 0 : std::max(square_sum / weight, 0.0); }

double NoiseScale::variance() const {
  return steps == 0 ? 0 : std::max(variance_sum / weight, least_variance);
}

double NoiseScale::gain(double scale) const {
  ER_CHECK(scale > 0);
  if (steps == 0) return 1;
  return (variance() + square()) / (variance() / scale + square());
}

}  // namespace elasticrun::worker::core
