// When the job looks at all its slots: at once in a small job, at intervals in a large one.
#include "job/core/workers/staff_time.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace std::chrono_literals;
using job::workers::StaffTime;

TEST_CASE("a small job is looked at after every event") {
  StaffTime time;
  CHECK(time.wake_at() == never);
  for (const auto at : {1s, 1s, 2s}) {
    const Time now = Time{} + at;
    time.concerns(now);
    CHECK(time.due(now));
    time.looked(256, now);
    CHECK(time.wake_at() == never);
  }
}

TEST_CASE("looks at a large job are some time apart, whatever they are for") {
  const Time now = Time{} + 1s;
  for (const bool planned : {false, true}) {
    StaffTime time;
    time.looked(100'256, now);
    if (planned)
      time.again(now + 1ms);
    else
      time.concerns(now + 1ms);
    CHECK(time.wake_at() == now + 1s);
    time.again(now + 2s);
    CHECK(time.wake_at() == now + 1s);
  }
}

TEST_CASE("a round of samples causes a look at the plan only when no worker is about to move") {
  const Time now = Time{} + 1s;
  StaffTime time;
  time.round_is_whole();
  CHECK_FALSE(time.take_round());
  time.nobody_moves();
  time.round_is_whole();
  CHECK(time.wake_at() == at_once);
  CHECK(time.take_round());
  CHECK_FALSE(time.take_round());
  time.concerns(now);
  time.round_is_whole();
  CHECK_FALSE(time.take_round());
  time.nobody_moves();
  time.round_is_whole();
  time.concerns(now);  // another event comes before the look
  CHECK_FALSE(time.take_round());
  time.looked(4, now);
  time.round_is_whole();
  CHECK_FALSE(time.take_round());
}
