// Each rule of membership as a table of small cases; whole conversations are in tests/scenarios.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "rendezvous/membership.hpp"
#include "tests/scenarios/scene.hpp"
#include "wire/limits.hpp"

namespace elasticrun::scenarios {
namespace {

// Workers 1 to 3 are the world of generation 1, which has stepped once; 4 and 5 are ready.
Scene running(const char* setting = "minimum 1") {
  Scene scene(membership_stage, setting);
  scene.play(R"(up 1
                up 2
                up 3
                up 4
                up 5
                1 2 3 4 5 say ready call 1 batch 8
                change 1 add 1 2 3: the first world
                1 2 3 say prepared g1
                1 2 3 say entered g1 step 0
                1 2 3 say committed g1 step 1)");
  return scene;
}

TEST_CASE("Go is sent once, when the last worker has prepared, in whatever order they do") {
  std::vector<int> order{1, 2, 3, 4};
  do {
    Scene scene = running();
    scene.tell("change 2 add 4 remove 2: replace 2");
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(scene.tell(fmt::format("{} says prepared g2", order[i])) == "");
    const std::string said = scene.tell(fmt::format("{} says prepared g2", order[3]));
    for (const int worker : order) CHECK(has(said, fmt::format("to {}: go g2", worker)));
    CHECK_FALSE(has(said, "at-once"));
    CHECK(scene.tell(fmt::format("{} says prepared g2", order[0])) == "");
  } while (std::next_permutation(order.begin(), order.end()));
}

// An unreachable member must be complained about before the whole attempt is given up.
TEST_CASE("connecting may take most of the time that a world has to prepare") {
  rendezvous::Membership membership({.prepare_timeout = std::chrono::seconds(20)});
  membership.step(rendezvous::WorkerUp{WorkerId(1), HostId(), 0}, Time{});
  membership.step(rendezvous::WorkerMessage{WorkerId(1), wire::Ready{{.call = 1}}}, Time{});
  membership.step(rendezvous::Change{ChangeId(1), {WorkerId(1)}, {}, "the first"}, Time{});
  std::int64_t connect_ms = 0;
  for (const auto& action :
       membership.step(rendezvous::PlanMade{Generation(1), BatchPlan{}}, Time{}))
    if (const auto* message = std::get_if<rendezvous::ToMembers>(&action))
      if (const auto* prepare = std::get_if<wire::Prepare>(&message->message))
        connect_ms = prepare->connect_ms;
  CHECK(connect_ms == 16'000);
}

// In a large world a rank may connect before all have published. A rank that waits for one that
// hangs delays others, too.
TEST_CASE("a worker that has not published is blamed when the time to connect is over") {
  Scene scene = running();
  scene.play("10s change 2 add 4 5: grow\n 1 2 4 say publish g2 a");
  CHECK(has(scene.tell("11s 1 says prepare-failed g2 about 4 hung-up: it is gone"), "leave out 4"));
  scene.play("12s change 3 add 4 5: grow\n 1 2 3 4 say publish g3 a");
  const std::string said = scene.tell("39s 1 says prepare-failed g3 about 4: it did not dial");
  CHECK(has(said, "fence 5"));
  CHECK_FALSE(has(said, "leave out 4"));
}

// At the end of that time, too, a worker's complaint about itself concerns only itself, and one
// that has not published has the rest of --prepare-timeout.
TEST_CASE("no worker is given up early for another worker's own problem") {
  Scene scene = running();
  scene.play("10s change 2 add 4 5: grow\n 1 2 3 say publish g2 a");
  const std::string said = scene.tell("36s 4 says prepare-failed g2 about 4: no descriptors");
  CHECK(has(said, "leave out 4"));
  CHECK_FALSE(has(said, "fence 5"));
}

TEST_CASE("a worker that publishes more than the limit is left out") {
  Scene scene = running();
  scene.play("10s change 2 add 4 5: grow");
  const std::string long_one(wire::address_bytes_max + 1, 'a');
  CHECK(scene.tell("11s 4 says publish g2 " + long_one.substr(1)) == "");
  CHECK(has(scene.tell("11s 5 says publish g2 " + long_one), "leave out 5"));
}

TEST_CASE("a world whose addresses do not fit into one frame is refused with a reason") {
  rendezvous::Membership membership({.prepare_timeout = std::chrono::seconds(20)});
  rendezvous::Change change{ChangeId(1), {}, {}, "the first"};
  constexpr std::uint32_t size = 50;
  for (std::uint32_t id = 1; id <= size; ++id) {
    membership.step(rendezvous::WorkerUp{WorkerId(id), HostId(), 0}, Time{});
    membership.step(rendezvous::WorkerMessage{WorkerId(id), wire::Ready{{.call = 1}}}, Time{});
    change.add.push_back(WorkerId(id));
  }
  membership.step(change, Time{});
  membership.step(rendezvous::PlanMade{Generation(1), BatchPlan{}}, Time{});
  const std::string escaped_in_frames(wire::address_bytes_max, '\n');
  std::string aborted;
  for (std::uint32_t id = 1; id <= size; ++id)
    for (const auto& action : membership.step(
             rendezvous::WorkerMessage{WorkerId(id),
                                       wire::Publish{Generation(1), escaped_in_frames, {}}},
             Time{}))
      if (const auto* message = std::get_if<rendezvous::ToMembers>(&action)) {
        CHECK_FALSE(std::holds_alternative<wire::Gathered>(message->message));
        if (const auto* abort = std::get_if<wire::Abort>(&message->message))
          aborted = abort->reason;
      }
  CHECK(has(aborted, "worker 50: the addresses of 50 ranks take"));
}

TEST_CASE("a world has formed when all have entered, and dismisses leavers when it has stepped") {
  Scene scene = running();
  scene.play("change 2 remove 1: shrink\n 1 2 3 say prepared g2");
  CHECK(scene.tell("2 says entered g2 step 5 idle 1ms") == "");
  // A commit proves that all have entered, but the last Entered may still be on its way.
  CHECK(scene.tell("2 says committed g2 step 6") == "");
  const std::string said = scene.tell("3 says entered g2 step 5 idle 4ms");
  CHECK(has(said, "formed g2 of 2 3 planned from step 5 idle 4 ms"));
  CHECK(has(said, "dismissed 1"));
  CHECK(has(said, "to 1: dismiss"));
  CHECK(scene.tell("3 says committed g2 step 6") == "");
}

TEST_CASE("a message about another generation changes nothing") {
  const char* messages[] = {"publish g9 x",          "prepared g9",         "prepare-failed g9: no",
                            "entered g9 step 3",     "committed g9 step 3", "broken g9: no",
                            "answer g9 step 3",      "publish g1 x",        "prepared g1",
                            "prepare-failed g1: no", "entered g1 step 3",   "committed g1 step 3",
                            "answer g1 step 3"};
  for (const char* message : messages) {
    CAPTURE(message);
    Scene scene = running();
    scene.tell("change 2 add 4: grow");
    CHECK(scene.tell(std::string("2 says ") + message) == "");
    CHECK(has(scene.tell("1 2 3 4 say prepared g2"), "go g2"));
  }
}

TEST_CASE("messages of unknown, dead and dismissed workers are ignored") {
  Scene scene = running();
  CHECK(scene.tell("9 says broken g1: no") == "");
  scene.play(R"(change 2 remove 1: shrink
                1 2 3 say prepared g2
                2 3 say entered g2 step 5
                2 says committed g2 step 6)");
  CHECK(scene.tell("1 says broken g2: no") == "");
  CHECK(scene.tell("1 says leave: enough") == "");
  CHECK(scene.tell("gone 1: exited") == "");
  CHECK(scene.tell("gone 1: exited again") == "");
}

// The answers of the survivors 1 and 2, and the members that then hold the state.
TEST_CASE("the newest committed state wins, and no state is not step 0") {
  struct Case {
    const char *first, *second;
    const char* members;
  };
  const Case cases[] = {
      {"step 5", "step 5", "members 1*,2*,4,5 "}, {"step 5", "step 6", "members 1,2*,4,5 "},
      {"step 6", "step 5", "members 1*,2,4,5 "},  {"none", "step 0", "members 1,2*,4,5 "},
      {"step 1", "none", "members 1*,2,4,5 "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.members);
    Scene scene = running();
    scene.tell("want 4 reserves 4 5");
    scene.tell("gone 3: was killed");
    scene.tell(std::string("1 says answer g1 ") + c.first);
    const std::string said = scene.tell(std::string("2 says answer g1 ") + c.second);
    std::string members = c.members;
    // 4 takes the rank of 3.
    CHECK(has(said, members));
    CHECK(scene.tell("1 2 4 5 say prepared g2").find("go g2 at-once") != std::string::npos);
  }
}

TEST_CASE("an abort during a change names the newest generation and asks every worker concerned") {
  struct Case {
    const char* before;
    const char* event;
    const char* asked;  // exactly these workers
  };
  const Case cases[] = {
      {"", "gone 3: x", "12"},
      {"", "2 says broken g1: x", "123"},
      {"change 2 add 4: grow", "gone 3: x", "124"},
      {"change 2 add 4: grow\n 1 2 3 4 say prepared g2", "gone 4: x", "123"},
      {"change 2 add 4: grow\n 1 2 3 4 say prepared g2", "1 says broken g1: x", "1234"},
      {"change 2 add 4: grow\n 1 2 3 4 say prepared g2\n 4 says entered g2 step 5",
       "2 says broken g2: x", "1234"},
      {"change 2 remove 1: shrink\n 1 2 3 say prepared g2\n 2 3 say entered g2 step 5", "gone 2: x",
       "13"},
      {"change 2 remove 1: shrink", "gone 1: x", "23"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.before);
    CAPTURE(c.event);
    Scene scene = running();
    const bool changing = c.before[0] != 0;
    scene.play(c.before);
    const std::string said = scene.tell(c.event);
    for (char worker = '1'; worker <= '5'; ++worker) {
      const bool asked = std::string_view(c.asked).find(worker) != std::string_view::npos;
      const std::string abort = fmt::format("to {}: abort g{}", worker, changing ? 2 : 1);
      CHECK(has(said, abort) == asked);
    }
    // The messages that follow from the abort do not cause a second one.
    CHECK(scene.tell("2 says broken g2: x") == "");
  }
}

TEST_CASE("a candidate that dies before Go ends the change, but not the world") {
  Scene scene = running();
  scene.tell("change 2 add 4: grow");
  const std::string said = scene.tell("gone 4: x");
  CHECK(has(said, "change 2 dropped"));
  CHECK_FALSE(has(said, "abort"));
  CHECK_FALSE(has(said, "broken"));
}

TEST_CASE("survivors below the minimum form no world, and without a state there is no world") {
  Scene few = running("minimum 2");
  CHECK(has(few.play("gone 4: x\n gone 5: x\n gone 1: x\n gone 2: x\n 3 says answer g1 step 7"),
            "below minimum: 1 of 2"));

  Scene lost = running();
  const std::string said = lost.play("gone 1: x\n gone 2: x\n gone 3: x");
  CHECK(has(said, "state lost"));
  CHECK_FALSE(has(said, "prepare"));
}

TEST_CASE("one survivor of the last world is enough; without one its leases must have ended") {
  // The leaver 1 alone has the state. 2 and 3, the members of the world that 1 has left, are silent
  // and may still step until second 20.
  Scene scene = running();
  scene.play(R"(change 2 remove 1: shrink
                change 3 add 4: too early
                1 2 3 say prepared g2
                2 3 say entered g2 step 5)");
  scene.tell("1s gone 2 at-latest 20s: was lost with its host");
  scene.tell("1s gone 3 at-latest 20s: was lost with its host");
  CHECK_FALSE(has(scene.tell("2s 1 says answer g2 step 5"), "prepare"));
  CHECK_FALSE(has(scene.tell("19s tick"), "prepare"));
  CHECK(has(scene.tell("20s tick"), "prepare g3 members"));

  Scene other = running();
  other.tell("1s gone 2 at-latest 20s: was lost with its host");
  other.tell("1s 1 says answer g1 step 5");
  CHECK(has(other.tell("1s 3 says answer g1 step 5"), "prepare g2 members"));
}

TEST_CASE("a generation is never used twice, even after dropped changes and broken worlds") {
  Scene scene = running();
  int newest = 1;
  const auto is_newer = [&](const std::string& said) {
    const std::size_t at = said.find("prepare g");
    REQUIRE(at != std::string::npos);
    const int generation = std::stoi(said.substr(at + 9));
    CHECK(generation > newest);
    newest = generation;
  };
  for (int i = 0; i < 5; ++i) {
    is_newer(scene.tell("change 2 add 4: grow"));
    scene.tell(fmt::format("4 says prepare-failed g{}: no", newest));
  }
  scene.tell("1 says broken g1: x");
  for (int second = 0; second < 5; ++second) {
    std::string said =
        scene.tell(fmt::format("{}s 1 2 3 4 5 say answer g{} step 5", second, newest));
    said += scene.tell(fmt::format("{}500ms tick", second));  // attempts have a pause between them
    is_newer(said);
    scene.tell(fmt::format("{}500ms 1 says prepare-failed g{}: no", second, newest));
  }
}

TEST_CASE("train returns only when all members are done") {
  Scene scene = running();
  CHECK(scene.tell("1 says done call 1 step 9") == "");
  CHECK(scene.tell("3 says done call 1 step 9") == "");
  CHECK(scene.tell("1 says done call 1 step 9") == "");
  const std::string said = scene.tell("2 says done call 1 step 9");
  for (const char* released : {"to 1: release", "to 2: release", "to 3: release"})
    CHECK(has(said, released));
  CHECK_FALSE(has(said, "to 4"));
  CHECK(has(said, "trained call 1"));
}

TEST_CASE("done counts for one world: after a re-form it must be sent again") {
  Scene scene = running();
  scene.play("1 2 say done call 1 step 9\n gone 3: x\n 1 2 say answer g1 step 9");
  scene.tell("1 2 4 5 say prepared g2");
  scene.tell("1 2 4 5 say entered g2 step 9");
  CHECK(scene.tell("4 5 say done call 1 step 9") == "");
  CHECK(scene.tell("1 says done call 1 step 9") == "");
  CHECK(has(scene.tell("2 says done call 1 step 9"), "trained"));
}

TEST_CASE("a leaver cannot be added again before it has left") {
  Scene scene = running();
  scene.play("change 2 remove 1: shrink\n 1 2 3 say prepared g2\n 2 3 say entered g2 step 5");
  CHECK(has(scene.tell("change 3 add 1: back"), "change 3 dropped"));
}

TEST_CASE("when all members are to be replaced, one that has the state stays") {
  Scene scene = running();
  const std::string said = scene.tell("change 2 add 4 5 remove 1 2 3: replace all");
  CHECK(has(said, "to 4: prepare g2"));
  CHECK(has(said, "*"));
}

}  // namespace
}  // namespace elasticrun::scenarios
