// Which slots get a worker at which size, and which are left alone after failures.
#include "job/core/workers/staffing.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::job::workers {
namespace {

using namespace std::chrono_literals;

job::SlotId slot(int index) { return {HostId(0), index}; }

struct Staff {
  Staff() { slots.set({slot(0), slot(1), slot(2), slot(3)}); }

  WorkerId start(job::SlotId place) { return workers.order(place, never); }
  void start_ready(job::SlotId place) { workers.ready(start(place), Time{}); }
  bool has_substitute(int size, Time now) const {
    return job::workers::has_substitute(slots, workers, size, now);
  }

  Slots slots;
  Workers workers;
};

std::string wanted(const Staff& staff, int size, Duration at = 0s) {
  std::string text;
  for (const job::SlotId& s : wanted_slots(staff.slots, staff.workers, size, Time{} + at))
    text += std::to_string(s.index);
  return text;
}

TEST_CASE("slots are taken in order, and a slot with a worker keeps it") {
  Staff staff;
  CHECK(wanted(staff, 0) == "");
  CHECK(wanted(staff, -1) == "");
  CHECK(wanted(staff, 2) == "01");
  CHECK(wanted(staff, 9) == "0123");
  staff.start(slot(2));
  const WorkerId last = staff.start(slot(3));
  CHECK(wanted(staff, 1) == "2");
  CHECK(wanted(staff, 2) == "23");
  CHECK(wanted(staff, 3) == "230");
  staff.workers.erase(last);
  CHECK(wanted(staff, 2) == "20");
}

TEST_CASE("a slow worker has a substitute where a slot is free or has a spare") {
  Staff staff;
  for (const int index : {0, 1, 2}) staff.start(slot(index));
  CHECK(staff.has_substitute(3, Time{}));
  CHECK_FALSE(staff.has_substitute(4, Time{}));
  staff.start_ready(slot(3));
  CHECK(staff.has_substitute(3, Time{}));  // the spare in slot 3
  const Duration time = staff.slots.quarantine(slot(0), Time{});
  CHECK_FALSE(staff.has_substitute(3, Time{}));  // the spare is needed now
  CHECK(wanted(staff, 3) == "123");
  CHECK(staff.has_substitute(3, Time{} + time));
}

TEST_CASE("a worker that trains is kept before one that is still starting") {
  Staff staff;
  staff.start(slot(0));
  for (const int index : {1, 2}) staff.start_ready(slot(index));
  CHECK(wanted(staff, 3) == "012");
  CHECK(wanted(staff, 2) == "12");
  CHECK(wanted(staff, 1) == "1");
}

TEST_CASE("a retired slot stays empty, a paused one does not") {
  Staff staff;
  for (const int index : {0, 1, 2}) staff.slots.retire(slot(index));
  CHECK(!staff.slots.all_retired());
  staff.slots.failed(slot(3), Time{});
  staff.slots.failed(slot(3), Time{});
  CHECK(wanted(staff, 4).empty());
  CHECK(!staff.slots.all_retired());
  staff.slots.retire(slot(3));
  CHECK(staff.slots.all_retired());
}

TEST_CASE("a worker that is leaving keeps its slot until it is gone") {
  Staff staff;
  const WorkerId leaving = staff.start(slot(0));
  staff.workers.turn(leaving, WorkerTurn::dismissed);
  CHECK(wanted(staff, 4) == "123");
  CHECK(staff.workers.in(slot(0)) == leaving);
  staff.workers.erase(leaving);
  CHECK(wanted(staff, 4) == "0123");
}

TEST_CASE("a worker whose slot no longer exists is not wanted") {
  Staff staff;
  staff.start(slot(3));
  staff.slots.set({slot(0), slot(1)});
  CHECK(wanted(staff, 4) == "01");
}

TEST_CASE("no worker id is used twice") {
  Staff staff;
  const WorkerId first = staff.start(slot(0));
  staff.workers.erase(first);
  CHECK(staff.start(slot(0)) > first);
  CHECK(staff.workers.find(first) == nullptr);
}

TEST_CASE("the first failure causes no pause, then the pause doubles up to five minutes") {
  Staff staff;
  const Duration pauses[] = {0s, 1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s, 300s};
  for (const Duration pause : pauses) {
    staff.slots.failed(slot(0), Time{} + 10s);
    CAPTURE(pause.count());
    CHECK(wanted(staff, 4, 10s) == (pause == 0s ? "0123" : "123"));
    CHECK(wanted(staff, 4, 10s + pause) == "0123");
    CHECK(staff.slots.wake_at(Time{} + 10s) == (pause == 0s ? never : Time{} + 10s + pause));
    CHECK(staff.slots.wake_at(Time{} + 10s + pause) == never);
  }
  staff.slots.forget_failures(slot(0));
  CHECK(wanted(staff, 4, 10s) == "0123");
  staff.slots.failed(slot(0), Time{} + 20s);
  CHECK(wanted(staff, 4, 20s) == "0123");
}

TEST_CASE("a slot whose worker left by itself stays empty") {
  Staff staff;
  staff.slots.retire(slot(1));
  CHECK(wanted(staff, 4) == "023");
  staff.slots.forget_failures(slot(1));
  CHECK(wanted(staff, 4) == "023");
}

}  // namespace
}  // namespace elasticrun::job::workers
