// Events are read back as they were written.
#include "job/report/event_log.hpp"

#include <doctest/doctest.h>

#include "job/report/event.hpp"

using namespace elasticrun::job::report;

TEST_CASE("every kind of value comes back") {
  const Event event{"round",
                    {{"whole", std::int64_t{-7}},
                     {"fraction", 426.5},
                     {"yes", true},
                     {"text", std::string("a \"b\"\n\xc3\xa9")},
                     {"texts", std::vector<std::string>{"a", "b,c"}},
                     {"numbers", std::vector<std::int64_t>{3, -4}},
                     {"none", std::vector<std::string>{}}}};
  const auto read = read_events(to_json(event, "2026-01-01T00:00:00Z", "j") + "\n", "events");
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 1);
  const Event& back = read->front();
  CHECK(back.name == "round");
  REQUIRE(back.fields.size() == event.fields.size() + 2);  // time and job come first
  for (std::size_t i = 0; i < event.fields.size(); ++i) {
    CAPTURE(event.fields[i].first);
    CHECK(back.fields[i + 2] == event.fields[i]);
  }
}

TEST_CASE("a list that mixes numbers and texts is left out, and so is a line that is no event") {
  const auto read =
      read_events("{\"event\":\"a\",\"odd\":[1,\"b\"],\"n\":1}\nnot json\n", "events");
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 1);
  CHECK(read->front().fields.size() == 1);
}
