// Which slots get a worker at which size, and which are left alone after failures.
#include "job/pool.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::job {
namespace {

using namespace std::chrono_literals;

SlotId slot(int index) { return {HostId(0), index}; }

Pool four_slots() {
  Pool pool;
  pool.set_slots({slot(0), slot(1), slot(2), slot(3)});
  return pool;
}

std::string wanted(const Pool& pool, int size, Duration at = 0s) {
  std::string text;
  for (const SlotId& s : pool.wanted(size, Time{} + at)) text += std::to_string(s.index);
  return text;
}

TEST_CASE("slots are taken in order, and who has one keeps it") {
  Pool pool = four_slots();
  CHECK(wanted(pool, 0) == "");
  CHECK(wanted(pool, -1) == "");
  CHECK(wanted(pool, 2) == "01");
  CHECK(wanted(pool, 9) == "0123");
  pool.start(slot(2), Time{});
  const WorkerId last = pool.start(slot(3), Time{});
  CHECK(wanted(pool, 1) == "2");
  CHECK(wanted(pool, 2) == "23");
  CHECK(wanted(pool, 3) == "230");
  pool.erase(last);
  CHECK(wanted(pool, 2) == "20");
}

TEST_CASE("a slow worker has a substitute where a slot is free, or has a spare") {
  Pool pool = four_slots();
  for (const int index : {0, 1, 2}) pool.start(slot(index), Time{});
  CHECK(pool.has_substitute(3, Time{}));
  CHECK_FALSE(pool.has_substitute(4, Time{}));
  pool.find(pool.start(slot(3), Time{}))->ready = true;
  CHECK(pool.has_substitute(3, Time{}));  // the one in slot 3
  const Duration time = pool.quarantine(slot(0), Time{});
  CHECK_FALSE(pool.has_substitute(3, Time{}));  // it is needed now
  CHECK(wanted(pool, 3) == "123");
  CHECK(pool.has_substitute(3, Time{} + time));
}

TEST_CASE("who trains is kept before who is still starting") {
  Pool pool = four_slots();
  pool.start(slot(0), Time{});
  for (const int index : {1, 2}) pool.find(pool.start(slot(index), Time{}))->ready = true;
  CHECK(wanted(pool, 3) == "012");
  CHECK(wanted(pool, 2) == "12");
  CHECK(wanted(pool, 1) == "1");
}

TEST_CASE("retired is for good, a pause is not") {
  Pool pool = four_slots();
  for (const int index : {0, 1, 2}) pool.retire(slot(index));
  CHECK(!pool.all_retired());
  pool.slot_failed(slot(3), Time{});
  pool.slot_failed(slot(3), Time{});
  CHECK(wanted(pool, 4).empty());
  CHECK(!pool.all_retired());
  pool.retire(slot(3));
  CHECK(pool.all_retired());
}

TEST_CASE("a worker on its way out has its slot until it is gone") {
  Pool pool = four_slots();
  const WorkerId leaving = pool.start(slot(0), Time{});
  pool.find(leaving)->expected = true;
  CHECK(wanted(pool, 4) == "123");
  CHECK(pool.worker_in(slot(0)) == leaving);
  pool.erase(leaving);
  CHECK(wanted(pool, 4) == "0123");
}

TEST_CASE("a worker of a slot that is gone is not wanted") {
  Pool pool = four_slots();
  pool.start(slot(3), Time{});
  pool.set_slots({slot(0), slot(1)});
  CHECK(wanted(pool, 4) == "01");
}

TEST_CASE("no id is used twice") {
  Pool pool = four_slots();
  const WorkerId first = pool.start(slot(0), Time{});
  pool.erase(first);
  CHECK(pool.start(slot(0), Time{}) > first);
  CHECK(pool.find(first) == nullptr);
}

TEST_CASE("the first failure costs nothing, then the pause doubles up to five minutes") {
  Pool pool = four_slots();
  const Duration pauses[] = {0s, 1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s, 300s};
  for (const Duration pause : pauses) {
    pool.slot_failed(slot(0), Time{} + 10s);
    CAPTURE(pause.count());
    CHECK(wanted(pool, 4, 10s) == (pause == 0s ? "0123" : "123"));
    CHECK(wanted(pool, 4, 10s + pause) == "0123");
    CHECK(pool.wake_at(Time{} + 10s) == (pause == 0s ? never : Time{} + 10s + pause));
    CHECK(pool.wake_at(Time{} + 10s + pause) == never);
  }
  pool.slot_works(slot(0));
  CHECK(wanted(pool, 4, 10s) == "0123");
  pool.slot_failed(slot(0), Time{} + 20s);
  CHECK(wanted(pool, 4, 20s) == "0123");
}

TEST_CASE("a slot whose worker left by itself stays empty") {
  Pool pool = four_slots();
  pool.retire(slot(1));
  CHECK(wanted(pool, 4) == "023");
  pool.slot_works(slot(1));
  CHECK(wanted(pool, 4) == "023");
}

}  // namespace
}  // namespace elasticrun::job
