// A member beside one that leaves, and one that leaves itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <variant>

#include "world_of_two.hpp"

namespace elasticrun::worker::core {
namespace {

TEST_CASE("a worker ends the step that another one has committed when it leaves") {
  Member member = in_world();
  const StepId before = member.committed();
  REQUIRE(member.begin_compute(noon));
  member.take_outbox();
  SUBCASE("the step ends") {
    member.receive(wire::Abort{Generation(2), "worker 1 left", before.next()});
    CHECK(member.take_outbox().empty());
    REQUIRE(member.may_apply({}, noon));
    CHECK(member.commit() == Member::After::left);
    CHECK(member.committed() == before.next());
  }
  SUBCASE("the collective after it ends") {
    member.collective_ended();
    member.receive(wire::Abort{Generation(2), "worker 1 left", before, 2});
    CHECK(member.task() == Task::step);
    member.collective_ended();
  }
  SUBCASE("it has called more collectives") {
    member.collective_ended();
    member.receive(wire::Abort{Generation(2), "worker 1 left", before, 0});
  }
  SUBCASE("it is to wait no longer") {
    member.receive(wire::Abort{Generation(2), "worker 1 left", before.next()});
    CHECK(member.task() == Task::step);
    member.receive(wire::Abort{Generation(2), "worker 1 left"});
    CHECK(member.committed() == before);
  }
  SUBCASE("the step breaks") {
    member.receive(wire::Abort{Generation(2), "worker 1 left", before.next()});
    member.broken(collective::GroupBroken("hung up"));
    CHECK(member.committed() == before);
  }
  SUBCASE("it is committed here, too, and the next one has begun") {
    member.receive(wire::Abort{Generation(2), "worker 1 left", before});
  }
  SUBCASE("another death comes before its end") {
    member.receive(wire::Abort{Generation(2), "worker 1 left", before.next()});
    member.receive(wire::Abort{Generation(3), "worker 2 died"});
    CHECK(member.committed() == before);
  }
  CHECK(member.task() == Task::wait);
  // Others may still need data of this one, until all have answered.
  member.receive(wire::Abort{Generation(2), "worker 1 left"});
  CHECK(std::ranges::count_if(member.take_outbox(), [](const MemberAction& action) {
          return std::holds_alternative<AbortGroups>(action);
        }) == 1);
}

TEST_CASE("the groups of a worker that leaves stay open until no peer needs them") {
  const auto aborts = [](Member& member) {
    return std::ranges::any_of(member.take_outbox(), [](const MemberAction& action) {
      return std::holds_alternative<AbortGroups>(action);
    });
  };
  Member member = in_world();
  SUBCASE("between two steps") {}
  SUBCASE("in the next step") { REQUIRE(member.begin_compute(noon)); }
  member.leave("enough");
  CHECK(member.task() == Task::evicted);
  CHECK(member.leaves());
  CHECK_FALSE(aborts(member));
  member.receive(wire::Dismiss{"left by itself"});
  CHECK_FALSE(member.leaves());
  CHECK(aborts(member));
}

TEST_CASE("a worker whose world is broken or released is not needed") {
  Member member = in_world();
  SUBCASE("broken") {
    REQUIRE(member.begin_compute(noon));
    member.broken(collective::GroupBroken("hung up"));
  }
  SUBCASE("released") { member.receive(wire::Release{1}); }
  SUBCASE("aborted") { member.receive(wire::Abort{Generation(2), "test"}); }
  member.leave("enough");
  CHECK_FALSE(member.leaves());
}

}  // namespace
}  // namespace elasticrun::worker::core
