// What policies say in the same words, and the one figure they share beside `worth`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

// Three or four digits: "4.27", "42.7", "4266".
std::string rate_text(double samples_per_s);
// "41.20", "412"
std::string money_text(double money);
// As to_text, of any number.
std::string time_text(double s);
// "12 %", "+12 %"; what is better beyond measure is not told as a number.
std::string gain_text(double gain, std::string_view plus = "");
// "1 worker", "4 workers"
std::string workers_text(int count);
// "growing", "shrinking", or, where only the batch is another, "changing"
std::string_view direction(int from, int to);
// At the throughput measured here, if the work left is known.
std::optional<Duration> time_left(const Snapshot& snapshot, const Measure& here);

}  // namespace elasticrun::autoscaler
