// Whether and when a program with its own loop is advised to count its samples.
#include "job/core/course/uncounted.hpp"

#include <doctest/doctest.h>

namespace elasticrun::job::course {
namespace {

// The number, from 1, of the report at which the advice comes; 0: never.
int told_at(Uncounted& uncounted, std::int64_t steps, std::int64_t samples) {
  int at = 0;
  for (int report = 1; report <= 100; ++report)
    if (uncounted.hear({.steps = steps, .samples = samples})) {
      CHECK(at == 0);
      at = report;
    }
  return at;
}

TEST_CASE("a loop of its own that does not count samples is reported once, after some steps") {
  struct Case {
    std::int64_t epoch, steps, samples;
    int at;
  };
  for (const Case& c : {Case{0, 1, 0, 20}, Case{0, 50, 0, 1}, Case{0, 0, 0, 0}, Case{0, 1, 8, 0},
                        Case{1000, 1, 0, 0}}) {
    CAPTURE(c.at);
    Uncounted uncounted;
    uncounted.ready({.call = 1, .samples = c.epoch});
    CHECK(told_at(uncounted, c.steps, c.samples) == c.at);
  }
}

TEST_CASE("one worker that counts is enough, since another worker's share may be empty") {
  Uncounted uncounted;
  uncounted.ready({.call = 1});
  CHECK_FALSE(uncounted.hear({.steps = 10}));
  CHECK_FALSE(uncounted.hear({.steps = 10, .samples = 5}));
  CHECK(told_at(uncounted, 100, 0) == 0);
}

}  // namespace
}  // namespace elasticrun::job::course
