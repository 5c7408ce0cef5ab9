// Parses numbers as users write them in host files and flags.
//
// std::stoi skips blanks and reads "4x" as 4, and strtol reads "" as 0. Here a typing mistake is an
// error.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace elasticrun {

// The number, if the whole text is one decimal number that fits; otherwise nullopt.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, ec] = std::from_chars(text.data(), last, number);
  if (ec != std::errc{} || end != last) return std::nullopt;
  return number;
}

// Likewise a finite number that is not negative and may have a fraction: a price, a sum of money.
inline std::optional<double> amount(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, ec] = std::from_chars(text.data(), last, number);
  if (ec != std::errc{} || end != last || !std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace elasticrun
