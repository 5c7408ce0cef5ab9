// When hosts and workers are reported as silent, hung or stuck, and when not.
#include "rendezvous/liveness.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::rendezvous {
namespace {

using namespace std::chrono_literals;

std::string text(const HostSilent& v) { return "host " + std::to_string(v.host.value); }
std::string text(const WorkerSilent& v) {
  return (v.reason.starts_with("was in ") ? "hung " : "silent ") + std::to_string(v.worker.value);
}
std::string text(const ReductionStuck& v) {
  return "stuck " + std::to_string(v.worker.value) + " g" + std::to_string(v.generation.value);
}

std::string text(const EverybodySilent& v) { return "all " + std::to_string(v.hosts); }

// Hosts are missed after 5 s, workers after 10 s, and steps after 60 s.
struct Watch {
  Liveness liveness{{.agent_timeout = 5s, .worker_timeout = 10s, .standstill = 600s, .hung = 60s}};
  bool state_kept = false;

  std::string at(Duration t) {
    std::string out;
    for (const Verdict& verdict : liveness.check(Time{} + t, state_kept))
      out += (out.empty() ? "" : ", ") + std::visit([](const auto& v) { return text(v); }, verdict);
    return out;
  }
  void heard(std::uint32_t host, Duration t) { liveness.host_heard(HostId(host), Time{} + t); }
  void sample(std::uint32_t worker, Duration t, const char* phase, Duration waiting) {
    wire::Sample sample{.generation = Generation(7), .waiting_ns = waiting.count(), .phase = phase};
    liveness.worker_sample(WorkerId(worker), sample, Time{} + t);
  }
  Duration wake() const { return std::max(liveness.wake_at(state_kept), Time{}) - Time{}; }
};

// Such a reduction waits 30 s for data that never arrives, although other waits may take 60 s.
TEST_CASE("a reduction over a lost link counts as stuck earlier than others") {
  struct Case {
    bool lost;
    Duration waiting;
    const char* other;  // the phase of worker 2
    const char* verdict;
  };
  for (const auto& [lost, waiting, other, verdict] :
       {Case{true, 29s, "reduce", ""}, Case{true, 30s, "reduce", "stuck 1 g7"},
        Case{false, 59s, "reduce", ""}, Case{true, 30s, "compute", ""}}) {
    CAPTURE(lost);
    CAPTURE(waiting.count());
    Watch watch;
    watch.sample(2, 100s, other, 1s);
    watch.liveness.worker_heard(WorkerId(1), Time{} + 100s);
    watch.liveness.worker_sample(WorkerId(1),
                                 {.generation = Generation(7),
                                  .waiting_ns = waiting.count(),
                                  .phase = "reduce",
                                  .lost_link = lost},
                                 Time{} + 100s);
    CHECK(watch.at(100s) == verdict);
  }
}

TEST_CASE("a silent host is reported once, and again only after it was heard in between") {
  Watch watch;
  watch.heard(1, 0s);
  watch.heard(2, 1s);
  CHECK(watch.wake() == 5s);
  CHECK(watch.at(4999ms) == "");
  watch.heard(2, 4s);
  CHECK(watch.at(5s) == "host 1");
  CHECK(watch.at(5s) == "");
  CHECK(watch.wake() == 9s);
  watch.liveness.host_gone(HostId(2));
  CHECK(watch.liveness.wake_at(false) == never);
  CHECK(watch.at(100s) == "");
  watch.heard(1, 100s);
  watch.heard(2, 104s);
  CHECK(watch.at(105s) == "host 1");
}

TEST_CASE("when all hosts are silent, no host is blamed until the leases end") {
  Watch watch;
  watch.heard(1, 0s);
  watch.heard(2, 400ms);
  CHECK(watch.at(5s) == "all 2");
  CHECK(watch.at(6s) == "");
  CHECK(watch.wake() == 10s);
  SUBCASE("the silence goes on") {
    CHECK(watch.at(10s) == "host 1");
    CHECK(watch.at(10400ms) == "host 2");
  }
  SUBCASE("one host is heard from again, the other is not") {
    watch.heard(2, 7s);
    CHECK(watch.at(7s) == "");
    CHECK(watch.wake() == 9500ms);
    watch.heard(2, 9s);
    CHECK(watch.at(9500ms) == "host 1");
    CHECK(watch.wake() == 14s);
  }
  SUBCASE("both hosts are heard from again") {
    watch.heard(1, 7s);
    watch.heard(2, 7s);
    CHECK(watch.at(7s) == "");
    CHECK(watch.wake() == 12s);
    CHECK(watch.at(12s) == "all 2");
  }
}

TEST_CASE(
    "hosts that are suspended with the only state have more time, and so have their workers") {
  Watch watch;
  watch.state_kept = true;
  watch.heard(1, 0s);
  watch.sample(1, 0s, "compute", 50s);
  CHECK(watch.at(5s) == "all 1");
  CHECK(watch.wake() == 610s);
  CHECK(watch.at(609s) == "");
  SUBCASE("they are not heard") { CHECK(watch.at(610s) == "host 1, silent 1"); }
  SUBCASE("they lose their state") {
    watch.state_kept = false;
    CHECK(watch.at(609s) == "host 1, silent 1");
  }
  SUBCASE("they resume") {
    watch.heard(1, 609s);
    CHECK(watch.at(609s) == "");
    CHECK(watch.wake() == 614s);
    watch.heard(1, 613s);
    CHECK(watch.at(613s) == "");
    watch.sample(1, 614s, "compute", 60s);
    CHECK(watch.at(614s) == "hung 1");
  }
}

TEST_CASE("a library counts as silent only after its first message; a plain program never does") {
  Watch watch;
  CHECK(watch.at(1000s) == "");
  watch.liveness.worker_heard(WorkerId(3), Time{});
  CHECK(watch.at(9999ms) == "");
  CHECK(watch.at(10s) == "silent 3");
  CHECK(watch.at(20s) == "");
  watch.liveness.worker_heard(WorkerId(4), Time{});
  watch.liveness.worker_gone(WorkerId(4));
  CHECK(watch.at(30s) == "");
}

TEST_CASE("a step that takes too long is blamed on a busy worker, not on one that waits") {
  for (const char* phase : {"compute", "apply"}) {
    Watch watch;
    watch.sample(1, 60s, phase, 59s);
    watch.sample(2, 60s, "reduce", 59s);
    CHECK(watch.at(60s) == "");
    watch.sample(1, 61s, phase, 60s);
    watch.sample(2, 61s, "reduce", 60s);
    CHECK(watch.wake() <= 0s);
    CHECK(watch.at(61s) == "hung 1");
    // Killing the worker may free the reduction; if not, a second verdict follows.
    CHECK(watch.wake() > 61s);
    CHECK(watch.at(61s) == "");
    watch.sample(2, 62s, "reduce", 61s);
    CHECK(watch.at(62s) == "stuck 2 g7");
  }
}

TEST_CASE("an idle worker does not hang") {
  for (const char* phase : {"idle", "a phase of a newer library"}) {
    Watch watch;
    watch.sample(1, 100s, phase, 99s);
    CHECK(watch.at(100s) == "");
  }
}

// Worker 2 waits in the reduction of the next epoch's first step while worker 1 evaluates.
TEST_CASE("on_epoch has a longer limit of its own") {
  struct Case {
    Duration in_epoch, in_reduce;
    const char* verdict;
  };
  for (const auto& [in_epoch, in_reduce, verdict] :
       {Case{99s, 98s, ""}, Case{2h - 1s, 2h - 2s, ""}, Case{2h, 2h - 1s, "hung 1"}}) {
    CAPTURE(in_epoch.count());
    Watch watch;
    const Duration now = 3h;
    watch.sample(1, now, "epoch", in_epoch);
    watch.sample(2, now, "reduce", in_reduce);
    CHECK(watch.at(now) == verdict);
  }
}

TEST_CASE("when all wait in one reduction for too long, the group is broken once") {
  Watch watch;
  watch.sample(1, 70s, "reduce", 60s);
  watch.sample(2, 70s, "reduce", 10s);
  CHECK(watch.at(70s) == "stuck 1 g7");
  CHECK(watch.at(70s) == "");
  watch.sample(1, 71s, "reduce", 1s);
  CHECK(watch.at(71s) == "");
}

TEST_CASE("a worker that waits for another one in on_epoch may wait as long as on_epoch takes") {
  Watch watch;
  watch.sample(1, 70s, "reduce", 60s);
  watch.sample(2, 70s, "epoch", 60s);
  CHECK(watch.at(70s) == "");
  watch.sample(2, 71s, "reduce", 1s);
  CHECK(watch.at(71s) == "stuck 1 g7");
}

}  // namespace
}  // namespace elasticrun::rendezvous
