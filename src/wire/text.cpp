// See text.hpp. Own code because Boost offers base64 only in a detail namespace and OpenSSL must
// not be linked into the user's process.
#include "wire/text.hpp"

#include <cstdint>
#include <cstring>

namespace elasticrun::wire {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool is_tail(unsigned char c) { return (c & 0xc0) == 0x80; }

// Length of the valid sequence that begins with a non-ASCII byte, or 0.
std::size_t sequence_length(const unsigned char* p, std::size_t left) {
  const unsigned char c = p[0];
  if (c >= 0xc2 && c <= 0xdf) return left >= 2 && is_tail(p[1]) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    if (left < 3 || !is_tail(p[1]) || !is_tail(p[2])) return 0;
    if (c == 0xe0 && p[1] < 0xa0) return 0;  // overlong
    if (c == 0xed && p[1] > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    if (left < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) return 0;
    if (c == 0xf0 && p[1] < 0x90) return 0;  // overlong
    if (c == 0xf4 && p[1] > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  for (std::size_t i = 0; i < size;) {
    std::uint64_t word = 0;
    if (size - i >= sizeof word) {  // program output is nearly all ASCII
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
    const std::size_t length = sequence_length(p + i, size - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = i + k > bytes.size();  // k == 0 never is
      text += padding ? '=' : alphabet[group >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t digit = alphabet.find(text[i + k]);
      if (text[i + k] == '=') ++padding;
      if (digit == alphabet.npos && text[i + k] != '=') return std::nullopt;
      if (digit != alphabet.npos && padding > 0) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(digit == alphabet.npos ? 0 : digit);
    }
    if (padding > 2 || (padding > 0 && i + 4 != text.size())) return std::nullopt;
    for (std::size_t k = 0; k < 3 - padding; ++k)
      bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  if (to_base64(bytes) != text) return std::nullopt;  // unused bits must be 0
  return bytes;
}

}  // namespace elasticrun::wire
