// See time.hpp.
#include "base/time.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace elasticrun {

Result<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (ec != std::errc{} || !std::isfinite(number) || number < 0)
    return Error{fmt::format("'{}' is not a time; write a number and a unit, as in 30s", text)};
  double scale = 0;
  if (unit == "ms") scale = 1e6;
  if (unit == "s") scale = 1e9;
  if (unit == "m") scale = 60e9;
  if (unit == "h") scale = 3600e9;
  if (unit.empty() && number == 0) return Duration::zero();
  if (scale == 0)
    return Error{fmt::format("'{}' has no known unit; use ms, s, m or h, as in 30s", text)};
  if (number * scale > 9e17)
    return Error{fmt::format("'{}' is too long; the longest time is ten years", text)};
  return Duration(static_cast<Duration::rep>(number * scale));
}

std::string to_text(Duration duration) {
  const double s = seconds(duration);
  if (s < 0) return fmt::format("-{}", to_text(-duration));
  if (s < 1) return fmt::format("{:.0f} ms", s * 1e3);
  if (s < 60) return fmt::format("{:.1f} s", s);
  const auto whole = static_cast<long>(s);
  if (whole < 3600) return fmt::format("{} m {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} m", whole / 3600, whole % 3600 / 60);
}

}  // namespace elasticrun
