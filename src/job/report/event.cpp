// See event.hpp.
#include "job/report/event.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "wire/text.hpp"

namespace elasticrun::job::report {
namespace {

// A JSON string (RFC 8259, section 7). Names that users give are UTF-8, but a reason may quote a
// program's output, which may be any bytes, or be cut inside a character. Strict readers of JSON
// accept only UTF-8.
std::string quoted(std::string_view text) {
  const bool utf8 = wire::is_utf8(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else if (!utf8 && static_cast<unsigned char>(c) > 0x7f) {
      out += "\\ufffd";
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct Writer {
  std::string& out;
  void operator()(std::int64_t v) { fmt::format_to(std::back_inserter(out), "{}", v); }
  void operator()(double v) {
    if (std::isfinite(v))
      fmt::format_to(std::back_inserter(out), "{:.6g}", v);
    else
      out += "null";
  }
  void operator()(bool v) { out += v ? "true" : "false"; }
  void operator()(const std::string& v) { out += quoted(v); }
  template <class T>
  void operator()(const std::vector<T>& values) {
    out += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ',';
      (*this)(values[i]);
    }
    out += ']';
  }
};

}  // namespace

std::string to_json(const Event& event, std::string_view time, std::string_view job) {
  std::string out = fmt::format("{{\"time\":{},\"event\":{}", quoted(time), quoted(event.name));
  if (!job.empty()) out += fmt::format(",\"job\":{}", quoted(job));
  for (const auto& [key, value] : event.fields) {
    out += ',';
    out += quoted(key);
    out += ':';
    std::visit(Writer{out}, value);
  }
  return out + '}';
}

}  // namespace elasticrun::job::report
