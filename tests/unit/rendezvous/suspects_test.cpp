// Which hosts are given up after their connection is lost, and when.
#include "rendezvous/suspects.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace elasticrun::rendezvous;
using namespace std::chrono_literals;

namespace {

const Time begin = Time{} + 1h;

std::string lost(Suspects& suspects, std::size_t others, Duration at) {
  std::string text;
  for (const auto& one : suspects.check(others, begin + at))
    text += std::to_string(one.host.value) + ": " + one.reason + "\n";
  return text;
}

}  // namespace

TEST_CASE("a host that does not dial again in time is given up, once") {
  Suspects suspects;
  CHECK(suspects.wake_at(3) == never);
  suspects.away(HostId(1), "reset", begin);
  CHECK(suspects.suspected(HostId(1)));
  CHECK(suspects.wake_at(3) == begin + 502ms);
  CHECK(lost(suspects, 3, 501ms) == "");
  CHECK(lost(suspects, 3, 502ms) == "1: reset, and it did not come back within 502 ms\n");
  CHECK(lost(suspects, 3, 503ms) == "");
  CHECK_FALSE(suspects.suspected(HostId(1)));
}

TEST_CASE("a host that dials again is no longer suspected") {
  Suspects suspects;
  suspects.away(HostId(1), "reset", begin);
  suspects.settled(HostId(1));
  CHECK(suspects.wake_at(3) == never);
  CHECK(lost(suspects, 3, 10s) == "");
}

TEST_CASE("many hosts that lose their connections at once have more time") {
  Suspects suspects;
  for (std::uint32_t host = 0; host < 1000; ++host) suspects.away(HostId(host), "reset", begin);
  CHECK(suspects.wake_at(3) == begin + 2500ms);
  for (std::uint32_t host = 0; host < 900; ++host) suspects.settled(HostId(host));
  CHECK(suspects.wake_at(3) == begin + 700ms);
}

TEST_CASE("a host that a broken group accuses has only a moment to dial again") {
  Suspects suspects;
  suspects.away(HostId(1), "reset", begin);
  CHECK(lost(suspects, 3, 1ms) == "");
  suspects.accused(HostId(1), "closed by peer", begin + 1ms);
  CHECK(lost(suspects, 3, 16ms) == "");
  CHECK(suspects.wake_at(3) == begin + 17ms);
  CHECK(lost(suspects, 3, 17ms) ==
        "1: reset; closed by peer, and it did not come back within 17 ms\n");
}

TEST_CASE("an accusation may come shortly before the loss of the connection") {
  for (const bool long_before : {true, false}) {
    Suspects suspects;
    suspects.accused(HostId(1), "closed by peer", begin - (long_before ? 501ms : 500ms));
    CHECK(lost(suspects, 3, 0ms) == "");
    suspects.away(HostId(1), "reset", begin);
    CHECK((lost(suspects, 3, 17ms) == "") == long_before);
  }
}

TEST_CASE("dialling in vain gives a host no more time") {
  Suspects suspects;
  suspects.away(HostId(1), "reset", begin);
  suspects.away(HostId(1), "its connection cannot be resumed", begin + 300ms);
  CHECK(suspects.wake_at(3) == begin + 502ms);
}

TEST_CASE("accusations do not count where all hosts are away, since the problem is a common one") {
  Suspects suspects;
  suspects.away(HostId(1), "reset", begin);
  suspects.away(HostId(2), "reset", begin);
  suspects.accused(HostId(1), "closed by peer", begin);
  CHECK(lost(suspects, 0, 100ms) == "");
  suspects.settled(HostId(2));
  CHECK(lost(suspects, 1, 100ms) ==
        "1: reset; closed by peer, and it did not come back within 100 ms\n");
}

TEST_CASE("an accusation is void once the host was heard for a while after it") {
  Suspects suspects;
  suspects.accused(HostId(1), "closed by peer", begin);
  suspects.heard(HostId(1), begin + 10ms);  // this message may have been sent before the accusation
  suspects.accused(HostId(2), "closed by peer", begin);
  suspects.heard(HostId(2), begin + 20ms);
  suspects.away(HostId(1), "reset", begin + 30ms);
  suspects.away(HostId(2), "reset", begin + 30ms);
  CHECK(lost(suspects, 3, 60ms) ==
        "1: reset; closed by peer, and it did not come back within 30 ms\n");
}
