// How an agent treats its workers while the controller is stopped or suspended.
#include <doctest/doctest.h>

#include "core_host.hpp"

namespace elasticrun::launcher::agent {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a stopped controller keeps the workers, and renews their lease when it resumes") {
  Host host(1s, SignalMeans::host_ends, 60s);
  host.runs(1);
  for (int second = 1; second < 10; ++second) CHECK(host.at(second * 1s, Tick{}) == "heartbeat 5");
  SUBCASE("it resumes") {
    for (int second = 10; second < 60; ++second)
      CHECK(host.at(second * 1s, Tick{}) == "heartbeat 5");
    CHECK(host.wake() == 60s);
    CHECK(host.at(60s, wire::agent::Heartbeat{Term{5}, Duration(59s).count()}) == "heartbeat 5");
    CHECK(host.core.lease_ends() == Time{} + 69s);
    // The next time it has as long again.
    for (int second = 61; second < 128; ++second)
      CHECK(host.at(second * 1s, Tick{}) == "heartbeat 5");
    CHECK(host.at(129s, Tick{}) == "kill 1, heartbeat 5");
  }
  SUBCASE("it does not resume") {
    for (int second = 10; second < 69; ++second)
      CHECK(host.at(second * 1s, Tick{}) == "heartbeat 5");
    CHECK(host.at(69s, Tick{}) == "kill 1, heartbeat 5");
    CHECK(host.at(70s, ProcessExited{WorkerId{1}, 0, 9}) == "exited 1 0/9, end 1 in silence");
  }
  SUBCASE("this host was suspended with it: that time does not count") {
    CHECK(host.at(10'000s, Tick{}) == "heartbeat 5");
    CHECK(host.wake() == 10'001s);
  }
  SUBCASE("its machine is gone") {
    CHECK(host.at(30s, Tick{}) == "heartbeat 5");
    CHECK(host.at(31s, ConnectionLost{}) == "");
    CHECK(host.at(35s, Tick{}) == "");
    CHECK(host.at(36s, Tick{}) == "kill 1");
  }
  SUBCASE("it loses the connection, because it reads nothing, and its machine takes another") {
    CHECK(host.at(30s, Tick{}) == "heartbeat 5");
    CHECK(host.at(31s, ConnectionLost{}) == "");
    for (int second = 33; second < 68; second += 3)
      CHECK(host.at(second * 1s, ControllerStandsStill{}) == "");
    CHECK(host.at(68s, Reconnected{}) == "heartbeat 5");
  }
  SUBCASE("it has given this host up meanwhile") {
    CHECK(host.at(30s, Tick{}) == "heartbeat 5");
    CHECK(host.at(31s, GivenUp{"silent"}) == "kill 1");
  }
  SUBCASE("it takes a connection, but does not answer") {
    CHECK(host.at(9500ms, ConnectionLost{}) == "");
    CHECK(host.at(9600ms, ControllerStandsStill{}) == "");
    CHECK(host.at(10s, Tick{}) == "");
    CHECK(host.at(15s, ControllerStandsStill{}) == "");
    CHECK(host.at(24s, Tick{}) == "");
    CHECK(host.at(25s, Tick{}) == "kill 1");  // its machine does not answer either
  }
}

}  // namespace
}  // namespace elasticrun::launcher::agent
