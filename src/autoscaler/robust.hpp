// Means that a few outliers do not move, and estimates of their error.
//
// Measurements on shared machines have outliers on one side only (a paused process, a page fault):
// the mean follows them, and the median wastes the information in the other values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.hpp"

namespace elasticrun::autoscaler {

// The median; for an even number of values the upper one of the middle two. All functions here need
// at least one value.
template <class T>
T median(std::vector<T> values) {
  ER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Mean of the middle half of the values: nearly as exact as the mean without outliers, and up to a
// quarter of the values may be arbitrarily wrong on either side.
double middle_mean(std::vector<double> values);

// Relative standard error of the middle mean; at least half a percent, since many values share
// errors (a warm cache, a slow minute) which their spread does not show.
double relative_error(const std::vector<double>& values, double mean);

}  // namespace elasticrun::autoscaler
