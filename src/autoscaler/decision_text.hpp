// Text that the policies share for their reasons, and time_left(), which several of them need.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

// A throughput with about three digits: "4.27", "42.7", "4266".
std::string rate_text(double samples_per_s);
// "41.20", "412"
std::string money_text(double money);
// As to_text(Duration), for any number of seconds; a very large one is clamped.
std::string time_text(double s);
// "12 %", "+12 %"; a gain above 1000 % is written as "over 1000 %".
std::string gain_text(double gain, std::string_view plus = "");
// "1 worker", "4 workers"
std::string workers_text(int count);
// "growing", "shrinking", or "changing" where only the batch changes
std::string_view direction(int from, int to);
// Time the remaining samples take at the throughput `here`; nothing when the number of samples left
// is unknown or the time is about a year or more.
std::optional<Duration> time_left(const Snapshot& snapshot, const Measure& here);

}  // namespace elasticrun::autoscaler
