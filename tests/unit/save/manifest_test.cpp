// A manifest that is torn or damaged at any place is not taken for a whole one.
#include <doctest/doctest.h>

#include "save/manifest.hpp"

namespace elasticrun::save {
namespace {

wire::saved::Manifest example() {
  return {.version = format_version,
          .step = 9,
          .argv = {"./train", "--lr", "0.1"},
          .files = {{"contents", 3, "00ff"}}};
}

TEST_CASE("a manifest is read back as it was written") {
  const auto read = decode(encode(example()));
  REQUIRE(read.has_value());
  CHECK(read->step == 9);
  CHECK(read->argv == example().argv);
  REQUIRE(read->files.size() == 1);
  CHECK(read->files[0].hash == "00ff");
}

TEST_CASE("a torn or damaged manifest is refused, wherever it is torn or damaged") {
  const std::string text = encode(example());
  for (std::size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(decode(text.substr(0, length)).has_value());
  }
  for (std::size_t place = 0; place < text.size(); ++place) {
    CAPTURE(place);
    std::string damaged = text;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    CHECK_FALSE(decode(damaged).has_value());
  }
}

TEST_CASE("a manifest of a later format is refused in words") {
  wire::saved::Manifest later = example();
  later.version = format_version + 1;
  const auto read = decode(encode(later));
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().text.find("format") != std::string::npos);
}

}  // namespace
}  // namespace elasticrun::save
