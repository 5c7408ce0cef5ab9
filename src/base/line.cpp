// See line.hpp.
#include "base/line.hpp"

namespace elasticrun {
namespace {

bool is_tail(unsigned char c) { return (c & 0xc0) == 0x80; }

// Whether a terminal or a reader of the line obeys this character of several bytes.
bool is_obeyed(std::string_view c) {
  const auto last = static_cast<unsigned char>(c.back());
  if (c.size() == 2) return c[0] == '\xc2' && last < 0xa0;             // C1
  if (c.starts_with("\xe2\x80")) return last >= 0xa8 && last <= 0xae;  // U+2028 to U+202E
  return c.starts_with("\xe2\x81") && last >= 0xa6 && last <= 0xa9;    // U+2066 to U+2069
}

}  // namespace

std::size_t character_bytes(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t left = text.size();
  if (left == 0) return 0;
  const unsigned char c = p[0];
  if (c < 0x80) return 1;
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

std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && most - end < 4 && is_tail(static_cast<unsigned char>(text[end]))) --end;
  return text.substr(0, end);
}

std::string as_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t size = character_bytes(text);
    if (size > 1 && !is_obeyed(text.substr(0, size)))
      line += text.substr(0, size);
    else if (first == '\n' || first == '\r' || first == '\t')
      line += ' ';
    else
      line += size == 1 && first >= 0x20 && first != 0x7f ? text.front() : '?';
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return line;
}

std::string as_line(std::string_view text, std::size_t most) {
  const std::string_view part = beginning(text, most);
  return as_line(part) + (part.size() < text.size() ? "..." : "");
}

std::string as_own_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() <= own_line_max) return as_line(text);
  constexpr std::size_t tail_max = own_line_max / 4;
  std::string_view tail = text.substr(text.size() - tail_max);
  while (!tail.empty() && is_tail(static_cast<unsigned char>(tail.front()))) tail.remove_prefix(1);
  return as_line(text, own_line_max - tail_max) + " " + as_line(tail);
}

}  // namespace elasticrun
