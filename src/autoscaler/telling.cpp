#include "autoscaler/telling.hpp"

#include <fmt/format.h>

#include <cmath>

namespace elasticrun::autoscaler {

double worth(double samples_per_s, int size, double min_gain) {
  return samples_per_s / std::pow(static_cast<double>(size), min_gain);
}

std::string rate_text(double rate) {
  return fmt::format("{:.{}f}", rate, rate < 10 ? 2 : rate < 100 ? 1 : 0);
}

std::string workers_text(int count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

std::string_view direction(int from, int to) { return to > from ? "growing" : "shrinking"; }

std::optional<Duration> time_left(const Snapshot& snapshot, const Measure& here) {
  if (!snapshot.steps_left || snapshot.global_batch <= 0) return {};
  const double samples =
      static_cast<double>(*snapshot.steps_left) * static_cast<double>(snapshot.global_batch);
  const double left = samples / here.samples_per_s;
  // Beyond a year it is as good as endless, and a Duration must not overflow.
  if (!(left < 3e7)) return {};
  return Duration(std::llround(left * 1e9));
}

}  // namespace elasticrun::autoscaler
