// Too few hosts for the minimum, and enough again: the messages, and that each comes once.
#include "job/core/hosts/shortage.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace elasticrun;
using namespace std::chrono_literals;
using job::hosts::Shortage;

TEST_CASE("each change is reported once") {
  struct Case {
    Shortage::Look look;
    const char* line;  // empty: nothing is reported
  };
  const Case cases[] = {
      {{.few = {}, .source = "hosts", .slots = 3, .minimum = 2}, ""},
      {{.few = "hosts for 1 of at least 2 workers", .source = "hosts", .slots = 1, .minimum = 2},
       "hosts names hosts for 1 of at least 2 workers; the job continues with at least 2, also on "
       "slots "
       "that are gone, where no worker is replaced"},
      {{.few = "hosts for 1 of at least 2 workers", .source = "hosts", .slots = 1, .minimum = 2},
       ""},
      {{.few = "1 of at least 2 hosts", .source = "hosts", .slots = 4, .minimum = 2},
       "hosts names 1 of at least 2 hosts; the job continues with these"},
      {{.few = {}, .source = "hosts", .slots = 3, .minimum = 2},
       "hosts names hosts for 3 workers again"},
      {{.few = "hosts for 1 of at least 2 workers",
        .source = "",
        .slots = 1,
        .minimum = 2,
        .running = false,
        .patience = 5s},
       "hosts for 1 of at least 2 workers are left; waiting up to 5.0 s for more"},
      {{.few = {}, .source = "", .slots = 2, .minimum = 2}, "there are hosts for 2 workers again"},
  };
  Shortage shortage;
  for (const Case& one : cases) {
    CAPTURE(one.line);
    const auto news = shortage.look(one.look);
    CHECK((news ? news->text : "") == one.line);
    if (news) CHECK(news->well == !one.look.few);
  }
}
