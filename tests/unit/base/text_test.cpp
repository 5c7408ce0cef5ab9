// Small things done with texts, and the numbers and times that users write.
#include "base/text.hpp"

#include <doctest/doctest.h>

#include "base/numbers.hpp"
#include "base/time.hpp"

using namespace elasticrun;
using namespace std::chrono_literals;

TEST_CASE("words are what stands between blanks") {
  using Words = std::vector<std::string_view>;
  CHECK(words("") == Words{});
  CHECK(words(" \t\r") == Words{});
  CHECK(words("a") == Words{"a"});
  CHECK(words("  a b\tc\r") == Words{"a", "b", "c"});
  CHECK(words("a b,c", ",") == Words{"a b", "c"});
}

TEST_CASE("the last line is the last one that is not empty") {
  CHECK(last_line("") == "");
  CHECK(last_line("\n \r\n") == "");
  CHECK(last_line("one") == "one");
  CHECK(last_line("one\ntwo\r\n\n") == "two");
  CHECK(last_line("\ntwo ") == "two");
}

TEST_CASE("nouns are counted, and letters of ASCII become lower case") {
  CHECK(counted(0, "step") == "0 steps");
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(2, "step") == "2 steps");
  CHECK(lower("Node-1.\xc3\x84") == "node-1.\xc3\x84");
}

TEST_CASE("a number is the whole text, or none") {
  for (const char* wrong : {"", " 1", "1 ", "+1", "4x", "0x10", "9223372036854775808", "1.5"})
    CHECK_FALSE(whole_number(wrong).has_value());
  CHECK(whole_number("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(whole_number("007") == 7);
  for (const char* wrong : {"", "nan", "inf", "-1", "1e999", "1,5"})
    CHECK_FALSE(amount(wrong).has_value());
  CHECK(amount("2.5") == 2.5);
  CHECK(amount("0") == 0);
}

TEST_CASE("a duration has a unit, and is written as it is read") {
  for (const char* wrong : {"", "5", "s", "-1s", "5 s", "5d", "1e30h"})
    CHECK_FALSE(parse_duration(wrong).has_value());
  CHECK(parse_duration("250ms").value() == 250ms);
  CHECK(parse_duration("1.5s").value() == 1500ms);
  CHECK(parse_duration("2m").value() == 2min);
  CHECK(parse_duration("3h").value() == 3h);
  CHECK(parse_duration("0s").value() == 0s);
}

TEST_CASE("a word is quoted for a shell") {
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's") == "'it'\\''s'");
  CHECK(shell_quoted("") == "''");
}
