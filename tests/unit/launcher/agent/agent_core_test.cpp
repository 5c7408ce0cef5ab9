// Each rule of the agent as one case: events at given times, and the actions that must follow.
#include <doctest/doctest.h>

#include "core_host.hpp"

namespace elasticrun::launcher::agent {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a worker starts, runs and exits") {
  Host host;
  CHECK(host.at(1s, Host::start(1)) == "spawn 1");
  CHECK(host.at(2s, ProcessStarted{WorkerId{1}, 42}) == "started 1");
  CHECK(host.at(3s, ProcessExited{WorkerId{1}, 7, 0}) == "exited 1 7/0");
  CHECK(host.at(3s, Host::start(2)) == "spawn 2");
  CHECK(host.at(3s, ProcessFailed{WorkerId{2}, 127, "not found"}) == "failed 2 127");
}

TEST_CASE("repeated and unknown orders do no harm") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, Host::start(1)) == "");
  CHECK(host.at(1s, ProcessStarted{WorkerId{1}, 42}) == "");
  CHECK(host.at(1s, Host::stop(9, 1s)) == "");
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{9}, 10}) == "");
  CHECK(host.at(2s, ProcessExited{WorkerId{1}, 0, 0}) == "exited 1 0/0");
  CHECK(host.at(2s, ProcessExited{WorkerId{1}, 0, 0}) == "");
  CHECK(host.at(2s, Host::start(1)) == "");  // it has finished, and an id is never used twice
  CHECK(host.at(2s, Host::stop(1, 1s)) == "");
}

TEST_CASE("stop sends the signal, and kills after the grace time") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, Host::stop(1, 3s, 2)) == "signal 1 2");
  CHECK(host.wake() == 4s);
  CHECK(host.at(3s, Tick{}) == "");
  CHECK(host.at(4s, Tick{}) == "kill 1");
  CHECK(host.at(5s, Tick{}) == "");
  CHECK(host.at(5s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9");
}

TEST_CASE("a second stop can shorten the grace time but not prolong it") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, Host::stop(1, 5s)) == "signal 1 15");
  CHECK(host.at(1s, Host::stop(1, 8s)) == "");
  CHECK(host.wake() == 6s);
  CHECK(host.at(2s, Host::stop(1, 1s)) == "");
  CHECK(host.wake() == 3s);
  CHECK(host.at(2s, Host::stop(1, 1s, 10)) == "signal 1 10");
  CHECK(host.at(2s, Host::stop(1, 0s)) == "kill 1");
}

TEST_CASE("a stop with SIGKILL or without grace kills at once, and a huge grace time is accepted") {
  for (const auto& stop : {Host::stop(1, 5s, 9), Host::stop(1, 0s), Host::stop(1, -1s)}) {
    Host host;
    host.runs(1);
    CHECK(host.at(1s, stop) == "kill 1");
  }
  Host host;
  host.runs(1);
  CHECK(host.at(1s, Host::stop(1, Duration::max())) == "signal 1 15");
  CHECK(host.at(2s, Tick{}) == "");
  // there is no such signal, so it counts as TERM
  CHECK(host.at(2s, Host::stop(1, Duration::max(), 99)) == "");
}

TEST_CASE("a stop or signal during the start takes effect after it") {
  Host host;
  CHECK(host.at(0s, Host::start(1)) == "spawn 1");
  CHECK(host.at(0s, wire::agent::SignalWorker{WorkerId{1}, 10}) == "");
  CHECK(host.at(0s, wire::agent::SignalWorker{WorkerId{1}, 10}) == "");
  CHECK(host.at(0s, Host::stop(1, 1s)) == "call off 1");
  CHECK(host.wake() == 10s);  // there is nothing to kill yet, so no reason to wake
  CHECK(host.at(0s, ProcessStarted{WorkerId{1}, 42}) == "started 1, signal 1 10, signal 1 15");
  CHECK(host.at(1s, Tick{}) == "kill 1");

  CHECK(host.at(1s, Host::start(2)) == "spawn 2");
  CHECK(host.at(1s, Host::stop(2, 0s)) == "call off 2");
  CHECK(host.at(3s, ProcessStarted{WorkerId{2}, 43}) == "started 2, kill 2");
}

TEST_CASE("only running workers get signals, and only valid ones") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{1}, 10}) == "signal 1 10");
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{1}, 10}) == "signal 1 10");
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{1}, 0}) == "");
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{1}, 255}) == "");
  CHECK(host.at(1s, Host::stop(1, 0s)) == "kill 1");
  CHECK(host.at(1s, wire::agent::SignalWorker{WorkerId{1}, 10}) == "");
}

TEST_CASE("when the controller is silent for a lease, all workers are killed and the agent ends") {
  Host host;
  host.runs(1);
  host.runs(2);
  CHECK(host.wake() == 10s);
  CHECK(host.at(9999ms, Tick{}) == "");
  CHECK(host.at(10s, Tick{}) == "kill 1, kill 2");
  CHECK(host.at(10s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9");
  CHECK(host.at(11s, ProcessExited{WorkerId{2}, 0, 9}) == "exited 2 0/9, end 1 in silence");
  CHECK(host.core.wake_at() == never);
  CHECK(host.at(12s, Tick{}) == "");
}

TEST_CASE("the lease runs from the newest own heartbeat that the controller has returned") {
  struct Case {
    Duration heard, clock;
    std::uint64_t term;
    Duration ends;
  };
  const Case cases[] = {
      {4s, 3s, 5, 13s},   // not from its arrival: it may have been on its way for long
      {4s, 4s, 5, 14s},   //
      {4s, 0s, 5, 10s},   // an old heartbeat never shortens the lease
      {4s, -9s, 5, 10s},  // nor does an impossible time
      {4s, 9s, 5, 14s},   // which does not prolong it either
      {4s, 3s, 6, 13s},   // a new controller
      {4s, 3s, 4, 10s},   // an old controller
  };
  for (const Case& c : cases) {
    Host host;
    CAPTURE(c.clock.count());
    CHECK(host.at(c.heard, wire::agent::Heartbeat{Term{c.term}, c.clock.count()}) == "");
    CHECK(host.wake() == c.ends);
  }
  Host host;
  host.at(3s, wire::agent::Heartbeat{Term{6}, Duration(3s).count()});
  host.at(5s, wire::agent::Heartbeat{Term{5},
                                     Duration(5s).count()});  // of term 5, which is over by now
  host.at(6s, wire::agent::Heartbeat{Term{6}, Duration(2s).count()});  // arrives out of order
  CHECK(host.wake() == 13s);
}

TEST_CASE("no other order renews the lease") {
  const AgentEvent orders[] = {Host::start(1), Host::stop(9, 1s),
                               wire::agent::SignalWorker{WorkerId{9}, 1},
                               wire::agent::SignalWorker{WorkerId{1}, 10}};
  Host host;
  for (const AgentEvent& order : orders) {
    host.at(3s, order);
    CHECK(host.wake() == 10s);
  }
}

TEST_CASE("a lease that has ended cannot be renewed") {
  Host host;
  host.runs(1);
  CHECK(host.at(10s, Tick{}) == "kill 1");
  CHECK(host.at(10s, wire::agent::Heartbeat{Term{6}, Duration(10s).count()}) == "");
  CHECK(host.at(11s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9, end 1 in silence");
}

TEST_CASE("events on this host do not renew the lease") {
  Host host;
  host.at(1s, Host::start(1));
  host.at(3s, ProcessStarted{WorkerId{1}, 42});
  host.at(4s, Tick{});
  CHECK(host.wake() == 10s);
}

TEST_CASE("without workers the agent ends at once when its lease is over") {
  Host host;
  CHECK(host.at(10s, Tick{}) == "end 1 in silence");
}

TEST_CASE("a lost controller: TERM, the orphan grace, kill, end, and no more reports") {
  Host host(1s);
  host.runs(1);
  CHECK(host.at(500ms, ControllerLost{"closed"}) == "signal 1 15");
  CHECK(host.at(1s, Tick{}) == "");  // no heartbeat
  CHECK(host.wake() == 4500ms);
  CHECK(host.at(2s, Host::start(2)) == "");
  CHECK(host.at(4500ms, Tick{}) == "kill 1");
  CHECK(host.at(5s, ProcessExited{WorkerId{1}, 0, 9}) == "end 1");
}

TEST_CASE("a lost connection stops only the heartbeats, and the lease goes on") {
  Host host(1s);
  host.runs(1);
  CHECK(host.at(500ms, ConnectionLost{}) == "");
  CHECK(host.at(1s, Tick{}) == "");  // no heartbeat
  CHECK(host.at(2s, Host::start(2)) == "spawn 2");
  // waits for the next connection
  CHECK(host.at(2s, ProcessStarted{WorkerId{2}, 43}) == "started 2");
  CHECK(host.at(3s, Reconnected{}) == "heartbeat 5");
  CHECK(host.at(3s, ConnectionLost{}) == "");
  CHECK(host.wake() == 10s);
  CHECK(host.at(10s, Tick{}) == "kill 1, kill 2");
}

TEST_CASE("an agent that was given up kills its workers at once") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, ConnectionLost{}) == "");
  CHECK(host.at(2s, GivenUp{"too late"}) == "kill 1");
  CHECK(host.at(2s, ProcessExited{WorkerId{1}, 0, 9}) == "end 1");
  CHECK(Host().at(1s, GivenUp{"too late"}) == "end 1");
}

TEST_CASE("the lease limits the orphan grace") {
  Host host;
  host.runs(1);
  CHECK(host.at(8s, ControllerLost{"closed"}) == "signal 1 15");
  CHECK(host.at(10s, Tick{}) == "kill 1");
}

TEST_CASE("shutdown: TERM to all, their grace time, then the end with 0, and no new starts") {
  Host host;
  host.runs(1);
  host.runs(2);
  CHECK(host.at(1s, wire::agent::Shutdown{Duration(2s).count()}) == "signal 1 15, signal 2 15");
  CHECK(host.at(1s, wire::agent::Shutdown{Duration(2s).count()}) == "");
  CHECK(host.at(1s, Host::start(3)) == "failed 3 121");
  CHECK(host.at(2s, ProcessExited{WorkerId{1}, 0, 0}) == "exited 1 0/0");
  CHECK(host.at(3s, Tick{}) == "kill 2");
  CHECK(host.at(3s, ProcessExited{WorkerId{2}, 0, 9}) == "exited 2 0/9, end 0");
  CHECK(Host().at(1s, wire::agent::Shutdown{0}) == "end 0");
}

TEST_CASE("shutdown reaches a worker that is just starting") {
  Host host;
  CHECK(host.at(0s, Host::start(1)) == "spawn 1");
  CHECK(host.at(0s, wire::agent::Shutdown{Duration(2s).count()}) == "call off 1");
  CHECK(host.at(1s, ProcessStarted{WorkerId{1}, 42}) == "started 1, signal 1 15");
  CHECK(host.at(2s, Tick{}) == "kill 1");
}

TEST_CASE("a signal to the agent is a shutdown with the orphan grace") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, Terminated{}) == "signal 1 15");
  CHECK(host.at(5s, Tick{}) == "kill 1");
  CHECK(host.at(5s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9, end 0");
}

TEST_CASE("a signal to all processes of a step is the controller's to answer") {
  Host host(100s, SignalMeans::job_stops);
  host.runs(1);
  CHECK(host.at(1s, Terminated{10}) == "asked 10 of job");
  CHECK(host.at(2s, Terminated{15}) == "asked 15 of job");  // another signal has its own meaning
  CHECK(host.at(2s, Terminated{15}) == "");                 // the watchdog passes it on
  CHECK(host.at(3s, ProcessExited{WorkerId{1}, 0, 0}) == "exited 1 0/0");
  CHECK(host.at(4s, wire::agent::Shutdown{0}) == "end 0");
}

TEST_CASE("an agent on its machine gives the controller a second before it asks") {
  Host host(100s, SignalMeans::either);
  host.runs(1);
  CHECK(host.at(1s, Terminated{}) == "");
  CHECK(host.wake() == 2s);
  CHECK(host.at(2s, Tick{}) == "asked 15");
  CHECK(host.at(3s, wire::agent::Shutdown{Duration(2s).count()}) == "signal 1 15");
  CHECK(host.at(4s, ProcessExited{WorkerId{1}, 0, 15}) == "exited 1 0/15, end 0");
}

TEST_CASE("a host that was asked to end ends although its controller is lost") {
  for (const auto means : {SignalMeans::job_stops, SignalMeans::either}) {
    Host host(100s, means);
    host.runs(1);
    host.at(1s, Terminated{});
    CHECK(host.at(2s, ControllerLost{"closed"}) == "signal 1 15");
    CHECK(host.at(3s, Terminated{}) == "");
    CHECK(host.at(6s, Tick{}) == "kill 1");
  }
  Host silent(100s, SignalMeans::job_stops);
  silent.runs(1);
  silent.at(1s, Terminated{});
  CHECK(silent.at(10s, Tick{}) == "kill 1");
}

TEST_CASE("without its watchdog the agent kills its workers at once and ends") {
  Host host;
  host.runs(1);
  CHECK(host.at(1s, WatchdogLost{}) == "kill 1");
  CHECK(host.at(1s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9, end 1");
}

TEST_CASE("the first reason to end gives the exit code, and the shortest time holds") {
  const wire::agent::Shutdown shutdown{Duration(2s).count()};
  struct Case {
    AgentEvent first, second;
    Duration kill;    // the events come at 1 s and 2 s
    const char* end;  // the actions after the worker's exit
  };
  const Case cases[] = {
      {shutdown, ControllerLost{"closed"}, 3s, "end 0"},
      {shutdown, Terminated{}, 3s, "exited 1 0/9, end 0"},
      {ControllerLost{"closed"}, Terminated{}, 5s, "end 1"},
      {Terminated{}, ControllerLost{"closed"}, 5s, "end 0"},
      {Terminated{}, shutdown, 4s, "exited 1 0/9, end 0"},
  };
  for (const Case& c : cases) {
    Host host;
    host.runs(1);
    CHECK(host.at(1s, c.first) == "signal 1 15");
    CHECK(host.at(2s, c.second) == "");
    CHECK(host.wake() == c.kill);
    CHECK(host.at(c.kill, Tick{}) == "kill 1");
    CHECK(host.at(6s, ProcessExited{WorkerId{1}, 0, 9}) == c.end);
  }
}

TEST_CASE("losing the watchdog kills the workers at once in any state of the agent") {
  struct Case {
    AgentEvent before;
    const char* end;
  };
  const Case cases[] = {
      {Tick{}, "exited 1 0/9, end 1"},
      {wire::agent::Shutdown{Duration(9s).count()}, "exited 1 0/9, end 0"},
      {ControllerLost{"closed"}, "end 1"},
      {Terminated{}, "exited 1 0/9, end 0"},
      {Host::stop(1, 9s), "exited 1 0/9, end 1"},
  };
  for (const Case& c : cases) {
    Host host;
    host.runs(1);
    host.at(1s, c.before);
    CHECK(host.at(2s, WatchdogLost{}) == "kill 1");
    CHECK(host.at(2s, WatchdogLost{}) == "");
    CHECK(host.at(3s, ProcessExited{WorkerId{1}, 0, 9}) == c.end);
  }
  Host starting;
  starting.at(0s, Host::start(1));
  CHECK(starting.at(1s, WatchdogLost{}) == "call off 1");
  CHECK(starting.at(2s, ProcessStarted{WorkerId{1}, 42}) == "started 1, kill 1");
}

TEST_CASE("without a worker each reason ends the agent at once") {
  CHECK(Host().at(1s, ControllerLost{"closed"}) == "end 1");
  CHECK(Host().at(1s, Terminated{}) == "end 0");
  CHECK(Host().at(1s, WatchdogLost{}) == "end 1");
}

TEST_CASE("a process that cannot be killed or started does not keep the agent for ever") {
  Host killed;
  killed.runs(1);
  CHECK(killed.at(1s, wire::agent::Shutdown{0}) == "kill 1");
  CHECK(killed.wake() == 6s);
  CHECK(killed.at(6s, Tick{}) == "end 0");

  Host starting;
  CHECK(starting.at(0s, Host::start(1)) == "spawn 1");
  CHECK(starting.at(1s, wire::agent::Shutdown{0}) == "call off 1");
  CHECK(starting.wake() == 6s);
  CHECK(starting.at(6s, Tick{}) == "end 0");
}

TEST_CASE("heartbeats are sent in time, with the newest term") {
  Host host(1s);
  CHECK(host.wake() == 1s);
  CHECK(host.at(999ms, Tick{}) == "");
  CHECK(host.at(1s, Tick{}) == "heartbeat 5");
  CHECK(host.wake() == 2s);
  CHECK(host.at(1500ms, wire::agent::Heartbeat{Term{8}}) == "");
  CHECK(host.at(2s, Tick{}) == "heartbeat 8");
}

TEST_CASE("while work is left, the agent always wakes later than now") {
  Host host(1s);
  host.runs(1);
  host.at(0s, Host::start(2));
  host.at(1s, Host::stop(1, 1s));
  host.at(1s, wire::agent::Shutdown{0});
  for (int i = 0; i < 20; ++i) {
    const Duration now = host.wake();
    if (host.core.wake_at() == never) break;
    host.at(now, Tick{});
    CHECK(host.wake() > now);
  }
  CHECK(host.core.wake_at() == never);
}

}  // namespace
}  // namespace elasticrun::launcher::agent
