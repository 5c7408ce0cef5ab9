// Lists encoded as runs: every list survives, equal entries take little room, bad runs are refused.
#include "wire/runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "wire/codec.hpp"
#include "wire/limits.hpp"

using namespace elasticrun;
using wire::Member;
using wire::MemberRun;

namespace {

bool equal(const std::vector<Member>& a, const std::vector<Member>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Member& x, const Member& y) {
    return x.worker == y.worker && x.host == y.host && x.slot == y.slot &&
           x.holds_state == y.holds_state;
  });
}

Member member(std::uint32_t worker, std::uint32_t host, std::int32_t slot, bool holds = false) {
  return {WorkerId(worker), HostId(host), slot, holds};
}

std::vector<Member> cluster(std::uint32_t hosts, std::uint32_t slots) {
  std::vector<Member> members;
  for (std::uint32_t i = 0; i < hosts * slots; ++i)
    members.push_back(member(1 + i, i / slots, static_cast<std::int32_t>(i % slots)));
  return members;
}

}  // namespace

TEST_CASE("identical hosts make one run") {
  CHECK(wire::runs_of(cluster(1000, 8)).size() == 1);
  CHECK(wire::runs_of(cluster(1000, 1)).size() == 1);
  CHECK(wire::runs_of(cluster(1, 64)).size() == 1);
  CHECK(wire::runs_of(std::vector<Member>{}).empty());
}

TEST_CASE("a replaced worker splits its run") {
  std::vector<Member> members = cluster(1000, 8);
  members[4004].worker = WorkerId(8001);
  CHECK(wire::runs_of(members).size() <= 5);
  CHECK(equal(wire::members_of(wire::runs_of(members)).value(), members));
}

TEST_CASE("every list of members survives a round trip") {
  std::minstd_rand dice(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Member> members;
    Member next = member(1, 0, 0);
    for (auto size = dice() % 30; size > 0; --size) {
      members.push_back(next);
      next.worker = WorkerId(next.worker.value + (dice() % 8 == 0 ? 2 : 1));
      if (dice() % 3 == 0) {
        next.host = HostId(next.host.value + (dice() % 6 == 0 ? 2 : 1));
        next.slot = dice() % 4 == 0 ? 3 : 0;
      } else {
        next.slot += dice() % 8 == 0 ? 2 : 1;
      }
      if (dice() % 9 == 0) next.holds_state = !next.holds_state;
    }
    CHECK(equal(wire::members_of(wire::runs_of(members)).value(), members));
  }
}

TEST_CASE("equal weights are one run, and every weight keeps its bits") {
  CHECK(wire::runs_of(std::vector<double>(5000, 0.1)).size() == 1);
  const std::vector<double> mixed{1, 1, 0.1, 0, -0.0, 1};
  const auto back = wire::numbers_of(wire::runs_of(mixed)).value();
  REQUIRE(back.size() == mixed.size());
  for (std::size_t i = 0; i < mixed.size(); ++i)
    CHECK(std::bit_cast<std::uint64_t>(back[i]) == std::bit_cast<std::uint64_t>(mixed[i]));
}

TEST_CASE("runs that claim too many entries are refused before they take memory") {
  const auto most = std::numeric_limits<std::uint32_t>::max();
  const auto half = static_cast<std::uint32_t>(wire::world_size_max / 2 + 1);
  CHECK_FALSE(wire::members_of({{.count = most}}).has_value());
  CHECK_FALSE(wire::members_of({{.count = half}, {.count = half}}).has_value());
  CHECK_FALSE(wire::members_of({{.count = 0}}).has_value());
  CHECK_FALSE(wire::members_of({{.per_host = 0}}).has_value());
  CHECK_FALSE(wire::members_of({{.worker = WorkerId(most), .count = 2}}).has_value());
  CHECK_FALSE(wire::members_of({{.host = HostId(most), .count = 2}}).has_value());
  CHECK_FALSE(wire::members_of(
                  {{.slot = std::numeric_limits<std::int32_t>::max(), .count = 2, .per_host = 2}})
                  .has_value());
  CHECK_FALSE(wire::numbers_of({{1, most}}).has_value());
  const auto message = wire::decode<wire::ToWorker>(
      R"({"Prepare":{"world":{"members":[{"worker":1,"count":4294967295}]}}})");
  REQUIRE_FALSE(message.has_value());
  CHECK(message.error().text.find("members") != std::string::npos);
}
