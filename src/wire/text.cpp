// See text.hpp. This is our own code because Boost has base64 only in a detail namespace, and
// OpenSSL must not be linked into the user's process.
#include "wire/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/line.hpp"

namespace elasticrun::wire {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t no_digit = 255;
constexpr std::array<std::uint8_t, 256> digits = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return table;
}();

}  // namespace

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  for (std::size_t i = 0; i < size;) {
    std::uint64_t word = 0;
    if (size - i >= sizeof word) {  // fast path: program output is nearly all ASCII
      std::memcpy(&word, p + i, sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {
        i += sizeof word;
        continue;
      }
    }
    if (p[i] < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = character_bytes(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k <= count; ++k) out[k] = alphabet[group >> (18 - 6 * k) & 63];
    out += 4;
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t size = 0;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pads = i + padding >= text.size();
    const std::uint8_t digit = pads ? 0 : digits[static_cast<unsigned char>(text[i])];
    if (digit == no_digit) return std::nullopt;
    group = group << 6 | digit;
    if (i % 4 != 3) continue;
    for (std::size_t k = 0; k < 3; ++k)
      bytes[size++] = static_cast<char>(group >> (16 - 8 * k) & 255);
    group = 0;
  }
  // The unused bits of a shorter last group must be 0.
  for (std::size_t k = 0; k < padding; ++k)
    if (bytes[--size] != '\0') return std::nullopt;
  bytes.resize(size);
  return bytes;
}

}  // namespace elasticrun::wire
