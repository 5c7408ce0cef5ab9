// See decision_text.hpp; also `worth` and `offer_of` of policy.hpp.
#include "autoscaler/decision_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace elasticrun::autoscaler {

std::string rate_text(double rate) {
  return fmt::format("{:.{}f}", rate, rate < 10 ? 2 : rate < 100 ? 1 : 0);
}

std::string money_text(double money) { return fmt::format("{:.{}f}", money, money < 100 ? 2 : 0); }

std::string time_text(double s) {
  constexpr double most = 9e9;  // a Duration must not overflow
  return elasticrun::to_text(Duration(std::llround(std::clamp(s, -most, most) * 1e9)));
}

std::string gain_text(double gain, std::string_view plus) {
  constexpr double most = 10;
  if (gain > most) return fmt::format("over {}{:.0f} %", plus, 100 * most);
  return fmt::format("{}{:.0f} %", std::signbit(gain) ? "" : plus, 100 * gain);
}

std::string workers_text(int count) { return counted(count, "worker"); }

std::string_view direction(int from, int to) {
  return to > from ? "growing" : to < from ? "shrinking" : "changing";
}

std::optional<Duration> time_left(const Snapshot& snapshot, const Measure& here) {
  if (!snapshot.samples_left) return {};
  const double left = static_cast<double>(*snapshot.samples_left) / here.samples_per_s;
  // Beyond a year it is as good as endless, and a Duration must not overflow.
  if (!(left < 3e7)) return {};
  return Duration(std::llround(left * 1e9));
}

}  // namespace elasticrun::autoscaler
