// Who is blamed for the end of a plain program's run, and whether another run follows.
#include "job/core/workers/restarts.hpp"

#include <doctest/doctest.h>

#include <csignal>

namespace elasticrun::job::workers {
namespace {

using namespace std::chrono_literals;

RunEnd exits(const char* worker, int code) {
  return {.worker = worker, .how = "exited", .code = code};
}
RunEnd dies(const char* worker, int signal) {
  return {.worker = worker, .how = "was killed", .signal = signal};
}
RunEnd is_lost(const char* worker) {
  return {.worker = worker, .how = "was lost", .code = 122, .with_host = true};
}
RunEnd told(RunEnd end) {
  end.told = true;
  return end;
}
RunEnd obeys(RunEnd end) {
  end.told = end.obeyed = true;
  return end;
}
RunEnd writes(RunEnd end, std::int64_t at_ns) {
  end.error_ns = at_ns;
  return end;
}
RunEnd not_found(const char* worker) {
  return {.worker = worker, .how = "not found", .code = 127, .hopeless = true};
}

TEST_CASE("a run died of the loss of a host, else of a kill, else of the first failure") {
  struct Case {
    std::vector<RunEnd> ends;
    const char* reason;
    const char* victims;
    int exit_code;
  };
  const Case cases[] = {
      {{exits("a", 3)}, "a exited", "", 3},
      {{exits("a", 3), exits("b", 4)}, "a exited", "1 other failed with it: b", 3},
      {{exits("a", 1), dies("b", SIGKILL)}, "b was killed", "1 other failed with it: a", 137},
      {{exits("a", 1), dies("b", SIGABRT), is_lost("c"), is_lost("d")},
       "c was lost",
       "3 others failed with it: a, b, d",
       122},
      {{exits("a", 1), obeys(dies("b", SIGTERM)), obeys(exits("c", 0))}, "a exited", "", 1},
      {{exits("a", 3), told(dies("b", SIGABRT))}, "a exited", "1 other failed with it: b", 3},
      {{exits("a", 3), told(dies("b", SIGKILL))}, "b was killed", "1 other failed with it: a", 137},
      {{writes(exits("a", 1), 30), told(writes(exits("b", 2), 20)), obeys(dies("c", SIGTERM))},
       "b exited",
       "1 other failed with it: a",
       2},
      {{writes(exits("a", 1), 30), obeys(writes(dies("b", SIGTERM), 20))},
       "b was killed",
       "1 other failed with it: a",
       1},
      {{exits("a", 4), told(writes(exits("b", 2), 20))},
       "a exited",
       "1 other failed with it: b",
       4},
      {{exits("a", 1), exits("b", 1), exits("c", 1), exits("d", 1), exits("e", 1), exits("f", 1)},
       "a exited",
       "5 others failed with it: b, c, d, e, ...",
       1},
  };
  for (const Case& c : cases) {
    Restarts restarts(0, false);
    restarts.run_begins(8, Time{1s});
    for (const RunEnd& end : c.ends) restarts.ended(end);
    const auto verdict = restarts.judge();
    CHECK_FALSE(verdict.again);
    CHECK(verdict.reason == c.reason);
    CHECK(verdict.victims == c.victims);
    CHECK(verdict.exit_code == c.exit_code);
  }
}

TEST_CASE("failures are counted up to the maximum, and each run forgets the one before") {
  Restarts restarts(2, false);
  for (int run = 1; run <= 3; ++run) {
    restarts.run_begins(2, Time{1s});
    restarts.ended(exits("a", 1));
    const auto verdict = restarts.judge();
    CHECK(verdict.again == (run < 3));
    CHECK(verdict.counted);
    CHECK(verdict.victims.empty());
    CHECK(restarts.count() == std::min(run, 2));
  }
}

TEST_CASE("the loss of a host is no failure where sizes may change") {
  CHECK_FALSE(Restarts(0, false).may_follow(is_lost("a")));
  CHECK(Restarts(1, false).may_follow(is_lost("a")));
  Restarts resizable(0, true);
  CHECK(resizable.may_follow(exits("a", 1)));  // the host of its peer may turn out to be lost
  resizable.run_begins(2, Time{1s});
  resizable.ended(exits("a", 1));
  resizable.ended(is_lost("b"));
  const auto verdict = resizable.judge();
  CHECK(verdict.again);
  CHECK_FALSE(verdict.counted);
  CHECK(resizable.count() == 0);
  resizable.run_begins(1, Time{1s});
  resizable.ended(exits("a", 1));
  CHECK_FALSE(resizable.judge().again);
}

TEST_CASE("a program that cannot be started is not started again") {
  Restarts restarts(3, true);
  restarts.run_begins(2, Time{1s});
  CHECK_FALSE(restarts.may_follow(not_found("a")));
  restarts.ended(not_found("a"));
  CHECK_FALSE(restarts.judge().again);
}

TEST_CASE("runs have the size of the first one, unless sizes may change") {
  Restarts fixed(1, false);
  CHECK_FALSE(fixed.fixed_size());
  fixed.run_begins(4, Time{1s});
  fixed.run_begins(3, Time{1s});
  CHECK(fixed.fixed_size() == 4);
  Restarts resizable(1, true);
  resizable.run_begins(4, Time{1s});
  CHECK_FALSE(resizable.fixed_size());
}

TEST_CASE("a restart costs the time from the end of one run to the progress of the next") {
  Restarts restarts(1, true);
  restarts.run_begins(2, Time{10s});
  CHECK_FALSE(restarts.makes_progress());
  CHECK(restarts.progressed(Time{13s}));
  CHECK_FALSE(restarts.progressed(Time{14s}));
  CHECK(restarts.cost() == 3s);
  restarts.run_ends(Time{20s});
  restarts.run_begins(2, Time{22s});
  CHECK_FALSE(restarts.makes_progress());
  CHECK(restarts.cost() == 3s);
  CHECK(restarts.progressed(Time{27s}));
  CHECK(restarts.cost() == 7s);
}

TEST_CASE("a better run is waited for until nothing has changed for the time to settle") {
  const Time start{100s};
  const SlotId a{HostId(0), 0}, b{HostId(1), 0}, c{HostId(2), 0};
  Restarts restarts(0, true);
  restarts.could_have({a, b}, start, 10s);
  CHECK(restarts.wake_at() == start + 10s);
  restarts.could_have({a, b}, start + 5s, 10s);
  CHECK(restarts.wake_at() == start + 10s);
  restarts.could_have({a, b, c}, start + 9s, 10s);
  CHECK(restarts.wake_at() == start + 19s);
  restarts.nothing_better();
  CHECK(restarts.wake_at() == never);
  restarts.could_have({a, b, c}, start + 20s, 10s);
  CHECK(restarts.wake_at() == start + 30s);
  restarts.hosts_changed("there is room for 3");
  const auto verdict = restarts.judge();
  CHECK(verdict.again);
  CHECK_FALSE(verdict.counted);
  CHECK(verdict.reason == "there is room for 3");
}

}  // namespace
}  // namespace elasticrun::job::workers
