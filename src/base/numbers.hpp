// Whole numbers as people write them in host files and flags.
//
// std::stoi skips blanks and takes "4x" for 4, strtol takes "" for 0; a typing mistake must be a
// mistake.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace elasticrun {

// The whole text is one decimal number that fits; else nothing.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, ec] = std::from_chars(text.data(), last, number);
  if (ec != std::errc{} || end != last) return std::nullopt;
  return number;
}

// Likewise one that is not below 0: a price, a sum of money.
inline std::optional<double> amount(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, ec] = std::from_chars(text.data(), last, number);
  if (ec != std::errc{} || end != last || !std::isfinite(number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace elasticrun
