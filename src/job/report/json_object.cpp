// See json_object.hpp.
#include "job/report/json_object.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "wire/text.hpp"

namespace elasticrun::job::report {

void JsonObject::put(double value) {
  members_ += std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

void JsonObject::put(Fixed value) {
  members_ +=
      std::isfinite(value.value) ? fmt::format("{:.{}f}", value.value, value.decimals) : "null";
}

void JsonObject::put(std::int64_t value) { members_ += fmt::to_string(value); }

// RFC 8259, section 7. Names that users give are UTF-8, but a reason may quote a program's output,
// which may be any bytes, or be cut inside a character.
void JsonObject::put(std::string_view text) {
  const bool utf8 = wire::is_utf8(text);
  members_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      members_ += '\\';
      members_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(members_), "\\u{:04x}", static_cast<unsigned>(c));
    } else if (!utf8 && static_cast<unsigned char>(c) > 0x7f) {
      members_ += "\\ufffd";
    } else {
      members_ += c;
    }
  }
  members_ += '"';
}

}  // namespace elasticrun::job::report
