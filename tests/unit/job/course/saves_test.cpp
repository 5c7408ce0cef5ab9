// When a save is due, whole or given up, and what a job goes on from.
#include <doctest/doctest.h>

#include "job/core/course/saves.hpp"

namespace elasticrun::job::course {
namespace {

using namespace std::chrono_literals;

constexpr Time at(Duration time) { return Time{} + time; }

JobSpec spec(Duration every = {}, Duration limit = {}) {
  JobSpec spec;
  spec.saving.folder = "/s";
  spec.saving.every = every;
  spec.saving.time_limit = limit;
  return spec;
}

wire::Saved part(const Saves& saves, int rank, int size, std::int64_t step = 7) {
  return {.number = saves.number(),
          .generation = Generation(3),
          .step = StepId(step),
          .rank = rank,
          .size = size,
          .call = 1,
          .files = {{"part-" + std::to_string(rank), 100, "0"}},
          .held_ns = 1'000'000 * (rank + 1)};
}

TEST_CASE("a save is whole when each member has written its part of the same step") {
  Saves saves(spec(10s));
  saves.times().job_began(at(0s));
  saves.times().world_formed(at(1s));
  CHECK(saves.wake_at(true) == at(11s));
  CHECK(saves.wake_at(false) == never);  // without a world no save is due
  saves.look_if_due(false, at(12s));
  CHECK_FALSE(saves.under_way());
  saves.look_if_due(true, at(12s));
  REQUIRE(saves.is(SaveState::wanted));
  const wire::Save order = saves.ask(at(0s));
  CHECK(order.folder == "/s/.saving-1");
  CHECK_FALSE(order.stop);
  CHECK_FALSE(saves.written(part(saves, 2, 3), at(10s)));
  CHECK_FALSE(saves.written(part(saves, 0, 3, 8), at(10s)));  // of another step: not of this save
  CHECK_FALSE(saves.written(part(saves, 0, 3), at(10s)));
  CHECK_FALSE(saves.written(part(saves, 0, 3), at(10s)));  // the same again
  CHECK(saves.written(part(saves, 1, 3), at(10s)));
  const auto manifest = saves.manifest({"./train"});
  REQUIRE(manifest.files.size() == 3);
  for (std::size_t rank = 0; rank < 3; ++rank)
    CHECK(manifest.files[rank].name == "part-" + std::to_string(rank));
  const auto report = saves.sealed("/s/save-1", manifest, at(15s));
  CHECK(report.bytes == 300);
  CHECK(report.held == 3ms);
  CHECK(report.took == 3s);
  CHECK_FALSE(report.last);
  CHECK(saves.kept().newest()->path == "/s/save-1");
  CHECK(saves.wake_at(true) == at(22s));  // counted from when the last one began
}

TEST_CASE("parts of members whose state sources list other arrays do not make one save") {
  Saves saves(spec(10s));
  saves.times().world_formed(at(0s));
  saves.look_if_due(true, at(10s));
  (void)saves.ask(at(10s));
  wire::Saved first = part(saves, 0, 3), second = part(saves, 1, 3);
  first.source_layout = 5;
  second.source_layout = 6;
  CHECK(saves.agrees(first));
  CHECK_FALSE(saves.written(first, at(11s)));
  CHECK_FALSE(saves.agrees(second));
  CHECK(saves.agrees(part(saves, 1, 3)));  // of a library that does not report it
  second.source_layout = 5;
  CHECK(saves.agrees(second));
}

TEST_CASE("a world that ends takes its save along, and the next one gets another number") {
  Saves saves(spec(10s));
  saves.times().world_formed(at(0s));
  saves.look_if_due(true, at(10s));
  (void)saves.ask(at(0s));
  const wire::Saved late = part(saves, 0, 2);
  CHECK_FALSE(saves.written(part(saves, 1, 2), at(10s)));
  CHECK(saves.world_ended() == 1);
  CHECK(saves.is(SaveState::wanted));
  CHECK(saves.ask(at(0s)).number == 2);
  CHECK_FALSE(saves.written(late, at(10s)));
  CHECK_FALSE(saves.written(part(saves, 0, 2), at(10s)));
  CHECK(saves.written(part(saves, 1, 2), at(10s)));
  CHECK(saves.world_ended() == 0);  // all is written: the world is not needed any more
}

TEST_CASE("a save that is not whole in time is given up, and tried again in its time") {
  Saves saves(spec(10s));
  saves.times().world_formed(at(0s));
  saves.look_if_due(true, at(10s));
  (void)saves.ask(at(0s));
  CHECK_FALSE(saves.overdue(at(609s)));
  CHECK(saves.overdue(at(610s)));
  saves.give_up(at(610s));
  CHECK_FALSE(saves.under_way());
  CHECK(saves.wake_at(true) == at(620s));
}

TEST_CASE("a save waits for a step while none ends") {
  Saves saves(spec(10s));
  saves.times().world_formed(at(0s));
  saves.times().stepped(at(9s));
  CHECK_FALSE(saves.waits_for_step(1s));
  saves.look_if_due(true, at(10s));
  (void)saves.ask(at(10s));
  CHECK(saves.waits_for_step(1s));
  saves.times().stepped(at(11s));  // a step of before, reported late
  CHECK(saves.waits_for_step(1s));
  saves.wait_longer(at(610s));
  CHECK_FALSE(saves.overdue(at(1209s)));
  saves.times().stepped(at(12s));
  CHECK_FALSE(saves.waits_for_step(1s));
}

TEST_CASE("a stop has the last word, whatever is being saved") {
  for (const int progress : {0, 1, 2, 3}) {
    CAPTURE(progress);
    Saves saves(spec(10s));
    saves.times().world_formed(at(0s));
    if (progress > 0) saves.look_if_due(true, at(10s));
    if (progress > 1) (void)saves.ask(at(0s));
    if (progress > 2) REQUIRE(saves.written(part(saves, 0, 1), at(10s)));
    saves.stop({"SIGTERM", "stopped by SIGTERM", 143}, true, at(11s));
    if (progress > 2) {  // the save before is made whole first
      REQUIRE(saves.is(SaveState::sealing));
      CHECK_FALSE(saves.sealed("/s/save-1", saves.manifest({}), at(12s)).last);
    }
    REQUIRE(saves.is(SaveState::wanted));
    CHECK(saves.ask(at(0s)).stop);
    REQUIRE(saves.written(part(saves, 0, 1, 9), at(10s)));
    CHECK(saves.sealed("/s/save-2", saves.manifest({}), at(13s)).last);
    CHECK(saves.wake_at(true) == at(611s));
  }
}

TEST_CASE("before the time limit there is time for a save, and half of it is for training") {
  struct Case {
    Duration limit;
    Time near;
  };
  for (const Case& c : {Case{1h, at(1h - 90s)}, Case{2min, at(1min)}, Case{0s, never}}) {
    Saves saves(spec({}, c.limit));
    saves.times().job_began(at(0s));
    CHECK(saves.wake_at(true) == c.near);
    if (c.near != never) CHECK(saves.limit_is_near(c.near));
  }
  Saves saves(spec(10s, 1h));  // a slow save moves the time
  saves.times().job_began(at(0s));
  saves.times().world_formed(at(0s));
  saves.look_if_due(true, at(10s));
  (void)saves.ask(at(0s));
  REQUIRE(saves.written(part(saves, 0, 1), at(10s)));
  (void)saves.sealed("/s/save-1", saves.manifest({}), at(70s));
  CHECK_FALSE(saves.limit_is_near(at(1h - 211s)));
  CHECK(saves.limit_is_near(at(1h - 210s)));
  saves.stop({"--time-limit", "", 143}, true, at(1h - 210s));
  CHECK(saves.left(at(1h - 210s)) == 200s);  // and some is left to end in
}

TEST_CASE("where steps take long, a save comes before one that the time limit could fall into") {
  Saves saves(spec({}, 1h));
  saves.times().job_began(at(0s));
  saves.times().world_formed(at(0s));
  saves.times().stepped(at(1s));
  saves.times().stepped(at(11min));
  CHECK(saves.wake_at(true) == at(1h - 90s - (11min - 1s)));
  CHECK(saves.wake_at(false) == at(1h - 90s));
  saves.look_if_due(true, at(49min));
  REQUIRE(saves.is(SaveState::wanted));
  (void)saves.ask(at(0s));
  REQUIRE(saves.written(part(saves, 0, 1), at(49min)));
  (void)saves.sealed("/s/save-1", saves.manifest({}), at(49min + 1s));
  CHECK(saves.wake_at(true) == at(1h - 33s));  // once
}

TEST_CASE("the end of a call of train is saved when that costs little beside what was trained") {
  struct Case {
    Duration trained;
    std::uint64_t bytes;
    bool saved;
  };
  for (const Case& c : {Case{4s, 0, false}, Case{5s, 0, true}, Case{5s, 200'000'000, false},
                        Case{54s, 200'000'000, false}, Case{55s, 200'000'000, true}}) {
    Saves saves(spec());
    (void)saves.kept().ready({.call = 1, .samples = 60, .state_bytes = c.bytes});
    saves.times().job_began(at(0s));
    saves.times().world_formed(at(100s));
    saves.steps_pause(StepId(7), false, at(100s + c.trained));
    CHECK(saves.is(SaveState::wanted) == c.saved);
  }
  Saves saves(spec());
  saves.times().world_formed(at(0s));
  saves.steps_pause(StepId(7), false, at(10s));
  (void)saves.ask(at(10s));
  wire::Saved slow = part(saves, 0, 1);
  slow.took_ns = 1'000'000'000;
  REQUIRE(saves.written(slow, at(10s)));
  (void)saves.sealed("/s/save-1", saves.manifest({}), at(12s));
  saves.steps_pause(StepId(7), false, at(1h));
  CHECK_FALSE(saves.under_way());  // nothing is new
  saves.steps_pause(StepId(8), false, at(59s));
  CHECK_FALSE(saves.under_way());
  saves.steps_pause(StepId(8), false, at(60s));
  CHECK(saves.under_way());
}

TEST_CASE("a stop after the last step takes what is being saved for its own") {
  Saves saves(spec());
  saves.times().world_formed(at(0s));
  saves.steps_pause(StepId(7), false, at(10s));
  CHECK_FALSE(saves.ask(at(10s)).stop);
  saves.stop({"SIGTERM", "stopped by SIGTERM", 143}, false, at(11s));
  REQUIRE(saves.is(SaveState::asked));
  CHECK(saves.written(part(saves, 0, 1), at(10s)));
}

TEST_CASE("the save of a stop is tried three times while there is time") {
  Saves saves(spec());
  saves.times().world_formed(at(0s));
  saves.stop({"SIGTERM", "stopped by SIGTERM", 143}, true, at(10s));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CHECK(saves.ask(at(0s)).number == attempt);
    CHECK(saves.try_again(at(20s)) == (attempt < 3));
    if (attempt < 3) CHECK(saves.ask_at() == at(21s));
  }
  Saves late(spec());
  late.times().world_formed(at(0s));
  late.stop({"SIGTERM", "stopped by SIGTERM", 143}, true, at(10s));
  (void)late.ask(at(10s));
  CHECK_FALSE(late.try_again(at(609s)));
}

TEST_CASE("an idle state is saved when the pause has been as long as the save takes") {
  Saves saves(spec());
  saves.times().world_formed(at(0s));
  saves.steps_pause(StepId(7), true, at(3s));
  saves.steps_pause(StepId(7), true, at(3050ms));  // repeated with later events
  CHECK(saves.wake_at(false) == at(3100ms));
  saves.look_if_due(false, at(3099ms));
  CHECK_FALSE(saves.under_way());
  SUBCASE("no worker steps") {
    saves.look_if_due(false, at(3100ms));
    CHECK(saves.under_way());
  }
  SUBCASE("a world forms before") {
    saves.steps_resume();
    CHECK(saves.wake_at(false) == never);
    saves.look_if_due(false, at(1h));
    CHECK_FALSE(saves.under_way());
  }
}

TEST_CASE("a save says what its own call trains, also when the next call has begun") {
  Saves saves(spec());
  const wire::TrainSpec first{.call = 1, .samples = 60, .state_bytes = 8, .state_layout = 5};
  const wire::TrainSpec second{.call = 2, .samples = 9, .state_bytes = 16, .state_layout = 6};
  saves.times().world_formed(at(0s));
  const auto manifest = [&] {
    REQUIRE(saves.written({.number = 1, .step = StepId(40), .size = 1, .call = 1}, at(2s)));
    return saves.manifest({});
  };
  CHECK(saves.ready(first) == "");
  SUBCASE("before it is asked for") {
    CHECK(saves.ready(second) == "");
    CHECK(saves.ready(second) == "");  // of another worker
    saves.secure(StepId(40), at(1s));
    (void)saves.ask(at(1s));
  }
  SUBCASE("while it is written") {
    saves.secure(StepId(40), at(1s));
    (void)saves.ask(at(1s));
    CHECK(saves.ready(second) == "");
    CHECK(saves.ready({.call = 3, .samples = 7}) == "");
  }
  SUBCASE("and all begin the first call again") {
    CHECK(saves.ready(second) == "");
    CHECK(saves.ready({.call = 3, .samples = 7}) == "");
    CHECK(saves.ready(first) == "");
    CHECK(saves.ready(second) == "");
    saves.secure(StepId(40), at(1s));
    (void)saves.ask(at(1s));
  }
  const wire::saved::Manifest held = manifest();
  CHECK(held.samples == 60);
  CHECK(held.state_bytes == 8);
  CHECK(held.state_layout == 5);
}

TEST_CASE("a newcomer that goes through the calls before changes nothing of what a save says") {
  KeptSaves kept({});
  CHECK(kept.ready({.call = 3, .samples = 7, .state_bytes = 16}) == "");
  CHECK(kept.ready({.call = 1, .samples = 60, .state_bytes = 8}) == "");
  CHECK(kept.train().call == 3);
  CHECK(kept.train_of(3).samples == 7);
  CHECK(kept.train_of(3).state_bytes == 16);
}

TEST_CASE("a save of a call that no worker has begun yet holds the state of the call before") {
  KeptSaves kept({});
  CHECK(kept.ready({.call = 1, .samples = 60, .state_bytes = 8, .state_layout = 5}) == "");
  CHECK(kept.train_of(3).state_bytes == 8);
  CHECK(kept.train_of(3).state_layout == 5);
  CHECK(kept.train_of(3).samples == 0);
}

TEST_CASE("a job goes on from the newest save that fits") {
  const wire::saved::Save newer{"/s/save-2", {.step = 20, .call = 1, .samples = 60, .argv = {"a"}}};
  const wire::saved::Save older{"/s/save-1", {.step = 10, .call = 1, .samples = 60}};
  KeptSaves kept({newer, older});
  CHECK(kept.resumed_from() == StepId(20));
  CHECK(kept.ready({.call = 1, .samples = 60}) == "");
  CHECK(kept.ready({.call = 2, .samples = 9}) == "");  // of another call: not comparable
  KeptSaves unknown({{"/s/save-1", {.call = 1}}});     // how many samples an epoch had
  CHECK(unknown.ready({.call = 1, .samples = 60}) == "");
  CHECK(kept.ready({.call = 1, .samples = 50}).find("an epoch had 60 samples") !=
        std::string::npos);
  CHECK(kept.ready({.call = 1, .samples = 60, .state_bytes = 4}).find("another program") !=
        std::string::npos);
  CHECK(kept.ready({.call = 1, .samples = 60, .state_layout = 4}).find("names, types or sizes") !=
        std::string::npos);
  kept.refuse("/s/save-2");
  CHECK(kept.newest()->path == "/s/save-1");
  CHECK(kept.resumed_from() == StepId(10));
  for (const char* path : {"/s/save-3", "/s/save-4", "/s/save-5"}) kept.add({path, {}});
  kept.refuse("/s/save-5");
  CHECK(kept.newest()->path == "/s/save-4");
  kept.refuse("/s/save-4");
  CHECK_FALSE(kept.newest());  // only two are kept
}

}  // namespace
}  // namespace elasticrun::job::course
