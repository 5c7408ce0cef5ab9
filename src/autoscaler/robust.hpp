// Means that a few wild values do not move, and how far they may be off.
//
// What is measured on shared machines has outliers on one side only (a paused process, a page
// fault): the mean follows them, the median wastes what the other values know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.hpp"

namespace elasticrun::autoscaler {

// Of an even number the upper one of the middle two. At least one value, here and below.
template <class T>
T median(std::vector<T> values) {
  ER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Mean of the middle half: nearly as exact as the mean when all is well, and a quarter of the
// values may be arbitrarily wrong on either side.
double middle_mean(std::vector<double> values);

// Standard error of that mean, relative; at least half a percent, since many values share errors
// (a warm cache, a slow minute) which their spread does not show.
double relative_error(const std::vector<double>& values, double mean);

}  // namespace elasticrun::autoscaler
