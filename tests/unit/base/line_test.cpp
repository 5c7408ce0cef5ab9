// Text of others in one line of ours.
#include "base/line.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace std::string_view_literals;

TEST_CASE("a line has nothing that ends it or that a terminal obeys") {
  struct Case {
    std::string_view text, line;
  };
  const Case cases[] = {
      {""sv, ""sv},
      {"plain gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x98\x80"sv,
       "plain gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x98\x80"sv},
      {"a\nb\r\nc\td"sv, "a b  c d"sv},
      {"\x1b]0;title\x07\x7f\0x"sv, "?]0;title???x"sv},
      {"\x9b"
       "2J"sv,
       "?2J"sv},  // C1, as one byte
      {"\xc2\x9b"
       "2J \xc2\x80\xc2\x9f\xc2\xa0"sv,
       "?2J ??\xc2\xa0"sv},  // C1 in UTF-8
      {"\xe2\x80\xa8\xe2\x80\xa9 \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa6"sv,
       "?? ? ? \xe2\x80\xa6"sv},  // ends of lines, directions; an ellipsis stays
      {"\xff\xc3 \xe2\x82 \xc0\xaf"sv, "?? ?? ??"sv},  // no UTF-8, cut, overlong
  };
  for (const Case& c : cases) {
    CAPTURE(c.line);
    CHECK(as_line(c.text) == c.line);
    CHECK(as_own_line(c.text) == c.line);
  }
}

TEST_CASE("a long text ends in dots, and never inside a character") {
  CHECK(as_line("12345", 5) == "12345");
  CHECK(as_line("123456", 5) == "12345...");
  CHECK(as_line("1234\xc3\xa9", 5) == "1234...");
  CHECK(beginning("1234\xf0\x9f\x98\x80", 7) == "1234");
  CHECK(as_line("\x80\x80\x80\x80\x80\x80", 5) == "?...");
  CHECK(as_line(std::string(1 << 20, '\n'), 60) == std::string(60, ' ') + "...");
}

TEST_CASE("a long line of ours keeps both ends") {
  std::string text = "begin ";
  for (int i = 0; i < 1 << 19; ++i) text += "\xc3\xa9";
  const std::string line = as_own_line(text + " end\n");
  CHECK(line.starts_with("begin \xc3\xa9"));
  CHECK(line.ends_with("\xc3\xa9 end"));
  CHECK(line.size() <= own_line_max + 8);
  CHECK(line.find('?') == line.npos);
}
