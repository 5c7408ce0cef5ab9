// Time as the cores see it: a time point passed in by the driver, never read from a clock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace elasticrun {

using Duration = std::chrono::nanoseconds;
// Monotonic; only differences have a meaning. The simulator starts at Time{}.
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr Time never = Time::max();
// The time for something that is due already.
inline constexpr Time at_once = Time::min();

// "250ms", "5s", "2m", "1h", "0", "1.5s"; a bare number other than 0 is an error (unit missing).
Result<Duration> parse_duration(std::string_view text);
// A text for the user, in units that fit the size: "250 ms", "5.0 s", "3 m 20 s", "2 h 5 m".
std::string to_text(Duration duration);

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline double milliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace elasticrun
