// See line_splitter.hpp. The common case (short lines) costs one memchr and one append per line.
#include "launcher/executors/line_splitter.hpp"

#include "base/check.hpp"

namespace elasticrun::launcher::executors {

LineSplitter::LineSplitter(std::size_t max) : max_(max) { ER_CHECK(max >= 4); }

void LineSplitter::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const bool whole = newline != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, newline);
    bytes.remove_prefix(whole ? newline + 1 : bytes.size());
    if (whole && rest_.empty() && piece.size() <= max_) {
      out.append(piece).push_back('\n');
      continue;
    }
    rest_.append(piece);
    while (rest_.size() > max_) cut(out);
    if (!whole) continue;
    out.append(rest_).push_back('\n');
    rest_.clear();
  }
}

void LineSplitter::finish(std::string& out) {
  if (rest_.empty()) return;
  out.append(rest_).push_back('\n');
  rest_.clear();
}

// Cuts one piece off the front, never within a UTF-8 character (whose continuation bytes are
// 10xxxxxx, at most three of them). Bytes that are not UTF-8 are cut at the limit.
void LineSplitter::cut(std::string& out) {
  std::size_t end = max_;
  for (int back = 0; back < 3 && (static_cast<unsigned char>(rest_[end]) & 0xc0) == 0x80; ++back)
    --end;
  if ((static_cast<unsigned char>(rest_[end]) & 0xc0) == 0x80) end = max_;
  out.append(rest_, 0, end).append(cut_mark).push_back('\n');
  rest_.erase(0, end);
}

}  // namespace elasticrun::launcher::executors
