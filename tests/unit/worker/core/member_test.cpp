// The gate, in every order of events: an abort may come between any two calls of the training
// thread. Whole conversations of a member are in tests/scenarios/worker.
#include "worker/core/member.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "world_of_two.hpp"

namespace elasticrun::worker::core {
namespace {

using Call = std::function<void(Member&)>;

// The messages of a member, as far as they matter here.
struct Said {
  std::vector<wire::Answer> answers;
  int committed = 0;  // messages
  int entered = 0;

  void listen(Member& member) {
    for (const auto& action : member.take_outbox()) {
      const auto* send = std::get_if<Send>(&action);
      if (!send) continue;
      if (const auto* answer = std::get_if<wire::Answer>(&send->message))
        answers.push_back(*answer);
      committed += std::holds_alternative<wire::Committed>(send->message);
      entered += std::holds_alternative<wire::Entered>(send->message);
    }
  }
};

// The calls of a training thread. Each checks the member's state first, so it is valid at any
// moment.
std::vector<Call> two_steps_and_a_switch() {
  const Call compute = [](Member& m) { m.begin_compute(noon); };
  const Call commit = [](Member& m) { m.commit(); };
  const auto apply = [](double votes) {
    return [votes](Member& m) { m.may_apply({votes}, noon); };
  };
  const Call enter = [](Member& m) {
    if (m.task() == Task::enter) m.begin_transfer();
  };
  const Call swap = [](Member& m) { m.may_swap(); };
  const Call entered = [](Member& m) { m.entered({.step = m.committed()}); };
  return {compute, apply(0), commit, compute, apply(2), commit, enter, swap, entered};
}

TEST_CASE("an abort at any moment is answered once, and nothing is committed after the answer") {
  const std::vector<Call> calls = two_steps_and_a_switch();
  for (std::size_t moment = 0; moment <= calls.size(); ++moment) {
    CAPTURE(moment);
    Member member = in_world();
    Said said;
    bool in_apply = false;
    StepId answered = no_state;
    for (std::size_t i = 0; i <= calls.size(); ++i) {
      if (i == moment) {
        in_apply = i == 2 || i == 5;
        const bool in_swap = i == 8;
        member.receive(wire::Abort{Generation(2), "test"});
        said.listen(member);
        CHECK(said.answers.size() == (in_apply || in_swap ? 0 : 1));
        answered = member.committed();
      }
      if (i == calls.size()) break;
      // Commit is called exactly when apply was allowed.
      const bool commits = i == 2 || i == 5;
      if (commits && i != moment && i > moment) continue;
      calls[i](member);
      said.listen(member);
    }
    REQUIRE(said.answers.size() == 1);
    CHECK(said.answers[0].generation == Generation(2));
    CHECK(said.answers[0].committed == member.committed());
    CHECK(member.committed().value == answered.value + (in_apply ? 1 : 0));
    CHECK(member.task() == Task::wait);
    CHECK_FALSE(member.begin_compute(noon));
    CHECK_FALSE(member.may_apply({2}, noon));
  }
}

TEST_CASE("the controller determines how long a member tries to connect") {
  for (const std::int64_t connect_ms : {0, 16'000}) {
    Member member(WorkerId(1));
    member.ready({.call = 1});
    member.receive(wire::Prepare{.world = world(1, true), .connect_ms = connect_ms});
    std::vector<std::chrono::milliseconds> limits;
    for (const auto& action : member.take_outbox())
      if (const auto* form = std::get_if<FormGroup>(&action))
        limits.push_back(form->spec.connect_limit);
    const std::chrono::milliseconds said(connect_ms);
    CHECK(limits == std::vector{connect_ms > 0 ? said : collective::GroupSpec{}.connect_limit});
  }
}

TEST_CASE("in a large world a member connects only to its neighbours") {
  for (const int size : {2, 32, 33, 100}) {
    CAPTURE(size);
    wire::World large{.generation = Generation(1)};
    for (int rank = 0; rank < size; ++rank)
      large.members.push_back(
          {WorkerId(static_cast<std::uint32_t>(rank + 1)), HostId(), rank, rank != 5});
    Member member(WorkerId(1));
    member.ready({.call = 1});
    member.take_outbox();
    member.receive(wire::Prepare{large});
    const auto actions = member.take_outbox();
    REQUIRE(actions.size() == 1);
    const std::vector<int> needs = std::get<FormGroup>(actions.front()).spec.neighbours;
    const auto size_of_all = static_cast<std::size_t>(size - 1);
    CHECK(needs.empty() == (size <= 32));
    CHECK((needs.empty() || needs.size() < size_of_all));

    member.published(Generation(1), "here", needs);
    const auto published = member.take_outbox();
    CHECK(std::get<wire::Publish>(std::get<Send>(published.front()).message).needs == needs);

    wire::Gathered gathered{.generation = Generation(1)};
    for (const int rank : needs) {
      gathered.ranks.push_back(rank);
      gathered.values.push_back("at " + std::to_string(rank));
    }
    // ranks that were not asked for
    gathered.ranks.insert(gathered.ranks.end(), {-1, size, 1 << 30});
    gathered.values.insert(gathered.values.end(), {"x", "y", "z"});
    member.receive(gathered);
    const auto connects = member.take_outbox();
    const auto& addresses = std::get<ConnectGroup>(connects.front()).addresses;
    REQUIRE(addresses.size() == static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      const bool needed = std::ranges::count(needs, rank) > 0;
      CHECK(addresses[static_cast<std::size_t>(rank)] ==
            (needed ? "at " + std::to_string(rank) : ""));
    }
  }
}

TEST_CASE("the switch needs the votes of all members, and this member's own Go") {
  struct Case {
    double votes;
    Task task;
  };
  for (const Case& c : {Case{0, Task::step}, Case{1, Task::step}, Case{2, Task::enter}}) {
    Member member = in_world();
    CHECK(member.votes().change == 1);
    REQUIRE(member.begin_compute(noon));
    REQUIRE(member.may_apply({c.votes}, noon));
    REQUIRE(member.commit() == Member::After::stands);
    CHECK(member.task() == c.task);
  }
}

TEST_CASE("a member that is behind answers with its old step until the new state is in place") {
  for (const bool swapped : {false, true}) {
    Member member = in_world();
    member.receive(wire::Abort{Generation(2), "test"});
    member.receive(wire::Prepare{world(3, false)});
    member.formed(Generation(3), "gloo");
    member.receive(wire::Go{Generation(3), true});
    member.begin_transfer();
    CHECK_FALSE(member.holds_state());
    CHECK_FALSE(member.may_receive_in_place());
    if (swapped) REQUIRE(member.may_swap());
    member.take_outbox();
    member.receive(wire::Abort{Generation(3), "again"});
    member.entered({.step = StepId(9)});
    Said said;
    said.listen(member);
    REQUIRE(said.answers.size() == 1);
    CHECK(said.answers[0].committed == StepId(swapped ? 9 : 0));
    CHECK(said.entered == (swapped ? 1 : 0));
  }
}

TEST_CASE("only the first step of a generation is announced") {
  Member member = in_world();
  Said said;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(member.begin_compute(noon));
    REQUIRE(member.may_apply({}, noon));
    REQUIRE(member.commit() == Member::After::stands);
    said.listen(member);
  }
  CHECK(said.committed == 1);
  CHECK(member.committed() == StepId(3));
}

// ---------------------------------------------------------------- saves

wire::Save save(std::int64_t number, bool stop = false) {
  return {.number = number, .folder = "/s", .stop = stop};
}

// The votes when both members of the world have been asked for this save.
Votes both_vote_for(std::int64_t number) {
  const double digit = Votes::digit_of(number);
  return {0, 2 * digit, 2 * digit * digit};
}

TEST_CASE("a save is written after the step in which all have agreed to it") {
  for (const bool stop : {false, true}) {
    CAPTURE(stop);
    Member member = in_world();
    member.receive(save(1, stop));
    CHECK_FALSE(member.take_save());
    REQUIRE(member.begin_compute(noon));
    REQUIRE(member.may_apply({}, noon));  // the other one has not heard of it yet
    REQUIRE(member.commit() == Member::After::stands);
    CHECK_FALSE(member.take_save());
    REQUIRE(member.begin_compute(noon));
    (void)member.votes();
    REQUIRE(member.may_apply(both_vote_for(1), noon));
    REQUIRE(member.commit() == Member::After::stands);
    const auto order = member.take_save();
    REQUIRE(order);
    CHECK(order->save.number == 1);
    CHECK(order->waits == stop);
    CHECK(member.task() == (stop ? Task::wait : Task::step));
    CHECK_FALSE(member.take_save());
  }
}

TEST_CASE("a member without a step before it saves at once") {
  enum class When { before_done, done, released, saved };
  for (const When when : {When::before_done, When::done, When::released, When::saved}) {
    CAPTURE(static_cast<int>(when));
    Member member = in_world();
    if (when == When::before_done) member.receive(save(2));
    if (when == When::saved) {
      member.receive(save(1, true));
      REQUIRE(member.begin_compute(noon));
      (void)member.votes();
      REQUIRE(member.may_apply(both_vote_for(1), noon));
      REQUIRE(member.commit() == Member::After::stands);
      REQUIRE(member.take_save());
    } else {
      REQUIRE(member.done(1));
    }
    if (when != When::before_done) {
      CHECK(member.task() == Task::wait);
      member.receive(save(2));
    }
    if (when == When::released) member.receive(wire::Release{1});
    REQUIRE(member.task() == Task::save);  // before anything else
    const auto order = member.take_save();
    REQUIRE(order);
    CHECK(order->save.number == 2);
    CHECK(order->waits);
    CHECK(member.task() == (when == When::released ? Task::released : Task::wait));
  }
}

TEST_CASE("a save that was not taken ends with its world") {
  Member member = in_world();
  REQUIRE(member.done(1));
  member.receive(save(1));
  member.receive(wire::Abort{Generation(2), "test"});
  CHECK(member.task() == Task::wait);
  CHECK_FALSE(member.take_save());
}

TEST_CASE("a save that comes in the middle of a step is for a later one") {
  for (const bool in_apply : {false, true}) {
    CAPTURE(in_apply);
    Member member = in_world();
    member.receive(save(1));
    REQUIRE(member.begin_compute(noon));
    CHECK(member.votes().save == Votes::digit_of(1));
    if (!in_apply) member.receive(save(2, true));  // the others may have heard of it, or not
    REQUIRE(member.may_apply(both_vote_for(1), noon));
    if (in_apply) member.receive(save(2, true));
    REQUIRE(member.commit() == Member::After::stands);
    const auto order = member.take_save();
    REQUIRE(order);
    CHECK(order->save.number == 1);
    CHECK_FALSE(order->waits);
    REQUIRE(member.begin_compute(noon));
    CHECK(member.votes().save == Votes::digit_of(2));
    REQUIRE(member.may_apply(both_vote_for(2), noon));
    REQUIRE(member.commit() == Member::After::stands);
    CHECK(member.take_save()->save.number == 2);
  }
}

TEST_CASE("between two calls of train a save waits for the next step") {
  Member member = in_world();
  REQUIRE(member.done(1));
  member.receive(wire::Release{1});
  member.receive(save(1));  // the program has not returned from train yet
  CHECK(member.task() == Task::released);
  member.outside();
  CHECK(member.task() == Task::released);
  member.ready({.call = 2});
  REQUIRE(member.begin_compute(noon));
  (void)member.votes();
  REQUIRE(member.may_apply(both_vote_for(1), noon));
  REQUIRE(member.commit() == Member::After::stands);
  CHECK(member.take_save());
}

}  // namespace
}  // namespace elasticrun::worker::core
