// See robust.hpp.
#include "autoscaler/robust.hpp"

#include <cmath>

namespace elasticrun::autoscaler {

namespace {

// The spread of very few values is not a reliable estimate, so they get a fixed error.
constexpr double error_of_few = 0.05;
constexpr double least_error = 0.005;
constexpr std::size_t few = 4;

}  // namespace

double middle_mean(std::vector<double> values) {
  ER_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t cut = (values.size() + 1) / 4;
  double sum = 0;
  for (std::size_t i = cut; i < values.size() - cut; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * cut);
}

// 1.4826 turns the median absolute deviation of a normal distribution into its standard deviation;
// the middle mean varies 1.1 times as much as the mean.
double relative_error(const std::vector<double>& values, double mean) {
  if (values.size() < few) return error_of_few;
  std::vector<double> away;
  away.reserve(values.size());
  for (const double value : values) away.push_back(std::abs(value - mean));
  const double sigma = 1.4826 * median(std::move(away));
  const double error = 1.1 * sigma / std::sqrt(static_cast<double>(values.size())) / mean;
  return std::max(least_error, error);
}

}  // namespace elasticrun::autoscaler
