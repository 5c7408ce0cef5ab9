// UTF-8 validation, and base64 in both directions.
#include "wire/text.hpp"

#include <doctest/doctest.h>

#include "base/rng.hpp"

using namespace elasticrun;
using namespace std::string_view_literals;

TEST_CASE("UTF-8 is validated as RFC 3629 demands") {
  struct Case {
    std::string_view text;
    bool valid;
  };
  const Case cases[] = {
      {""sv, true},
      {"plain ASCII, longer than a machine word\n\0\x7f"sv, true},
      {"gr\xc3\xbc\xc3\x9f"sv, true},
      {"\xe2\x82\xac\xf0\x9f\x98\x80"sv, true},
      // next to the surrogates and to the end
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"sv, true},
      {"\x80"sv, false},  // a continuation byte alone
      {"\xc3"sv, false},  // truncated
      {"\xe2\x82"sv, false},
      {"\xf0\x9f\x98"sv, false},
      {"\xc0\xaf"sv, false},  // overlong
      {"\xc1\xbf"sv, false},
      {"\xe0\x9f\xbf"sv, false},
      {"\xf0\x8f\xbf\xbf"sv, false},
      {"\xed\xa0\x80"sv, false},      // surrogate
      {"\xf4\x90\x80\x80"sv, false},  // above U+10FFFF
      {"\xf5\x80\x80\x80"sv, false},
      {"\xff"sv, false},
      {"eight by\xfftes and more"sv, false},
      {"\xe2\x28\xa1"sv, false},
  };
  for (const Case& c : cases) {
    CAPTURE(wire::to_base64(c.text));
    CHECK(wire::is_utf8(c.text) == c.valid);
  }
}

TEST_CASE("base64 matches the test vectors of RFC 4648") {
  const std::pair<std::string_view, std::string_view> cases[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : cases) {
    CHECK(wire::to_base64(bytes) == text);
    CHECK(wire::from_base64(text) == bytes);
  }
}

TEST_CASE("base64 is refused unless it is exactly what the encoder writes") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "=",
                           "====", "Z===", "Zh==", "Zg==Zg==", "Zm9=v", "Zm 9", "Zm9v\n", "Zm9-"}) {
    CAPTURE(text);
    CHECK_FALSE(wire::from_base64(text).has_value());
  }
}

TEST_CASE("arbitrary bytes survive base64") {
  Rng rng(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(rng.below(256));
    CHECK(wire::from_base64(wire::to_base64(bytes)) == bytes);
  }
}
