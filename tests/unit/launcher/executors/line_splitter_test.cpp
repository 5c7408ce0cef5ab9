// The line splitter, with its input split in every possible way.
#include "launcher/executors/line_splitter.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::launcher::executors {
namespace {

std::string split(std::string_view text, std::size_t max, std::size_t piece) {
  LineSplitter lines(max);
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += piece) lines.feed(text.substr(i, piece), out);
  lines.finish(out);
  return out;
}

TEST_CASE("lines come out whole, however the bytes arrive") {
  const struct {
    const char* what;
    std::string in;
    std::string out;
  } cases[] = {
      {"nothing", "", ""},
      {"one line", "abc\n", "abc\n"},
      {"no newline at the end", "abc\nde", "abc\nde\n"},
      {"empty lines", "\n\nx\n", "\n\nx\n"},
      {"as long as allowed", "12345678\n", "12345678\n"},
      {"one more", "123456789\n", "12345678 [...]\n9\n"},
      {"three pieces", "123456781234567812\n", "12345678 [...]\n12345678 [...]\n12\n"},
      {"too long and never ended", "1234567812", "12345678 [...]\n12\n"},
      {"a zero byte", std::string("a\0b\n", 4), std::string("a\0b\n", 4)},
      {"not inside a character", "1234567\xc3\xa4\n", "1234567 [...]\n\xc3\xa4\n"},
      {"four-byte character", "123456\xf0\x9f\x98\x80\n", "123456 [...]\n\xf0\x9f\x98\x80\n"},
      {"no UTF-8 at all", "1234\x80\x80\x80\x80\x80\n", "1234\x80\x80\x80\x80 [...]\n\x80\n"},
  };
  for (const auto& c : cases)
    for (std::size_t piece = 1; piece <= c.in.size() + 1; ++piece) {
      CAPTURE(c.what);
      CAPTURE(piece);
      CHECK(split(c.in, 8, piece) == c.out);
    }
}

TEST_CASE("a line is passed on as soon as it is complete, not before") {
  LineSplitter lines(100);
  std::string out;
  lines.feed("abc", out);
  CHECK(out.empty());
  lines.feed("d\nef", out);
  CHECK(out == "abcd\n");
}

}  // namespace
}  // namespace elasticrun::launcher::executors
