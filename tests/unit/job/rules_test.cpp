// Rules of the job that a walk does not show: budgets, deadlines, and how often messages are sent.
// The walks are in tests/scenarios/job.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scenarios/scene.hpp"

namespace elasticrun::scenarios {
namespace {

// Workers 1 and 2 are on one host, in a world that has stepped.
Scene training(const char* setting = "min 1") {
  Scene scene(job_stage, setting);
  scene.play(R"(0s slots 2
                host 0 up
                host 0 says started 1
                host 0 says started 2
                1 2 say ready call 1 batch 8
                1 2 say prepared g1
                1 2 say entered g1 step 0
                1 2 say committed g1 step 1)");
  return scene;
}

TEST_CASE("signals go to all workers, including those that are still starting") {
  Scene scene(job_stage, "min 1");
  scene.play("0s slots 3\n host 0 up\n host 0 says started 1\n host 0 says started 3");
  CHECK(scene.tell("pass 10") == "host 0: signal 1 10\nhost 0: signal 2 10\nhost 0: signal 3 10");
}

TEST_CASE("failures count in a row: only a new step between them resets the count") {
  for (const bool new_step : {true, false}) {
    CAPTURE(new_step);
    Scene scene = training("min 1 max-restarts 1");
    scene.play(R"(1s host 0 says exited 2 signal 9
                  1 says answer g1 step 1
                  1 says prepared g2
                  1 says entered g2 step 1
                  3 says join)");
    scene.tell(fmt::format("1 says sample g2 step {} in compute", new_step ? 2 : 1));
    const std::string said = scene.tell("2s host 0 says exited 3 code 1");
    CHECK(has(said, "phase: stopping") != new_step);
    CHECK(has(said, "restart_refused") != new_step);
  }
}

TEST_CASE("members that one world loses are one failure, and the next failure is another") {
  Scene scene(job_stage, "min 1 max-restarts 1");
  scene.play(R"(0s slots 4
                host 0 up
                1 2 3 4 say ready call 1 batch 8
                1 2 3 4 say prepared g1
                1 2 3 4 say entered g1 step 0
                1 2 3 4 say committed g1 step 1)");
  CHECK_FALSE(has(scene.play(R"(1s host 0 says exited 2 signal 9
                                host 0 says exited 3 signal 9
                                host 0 says exited 4 signal 9)"),
                  "restart_refused"));
  scene.play(R"(1 says answer g1 step 1
                1 says prepared g2
                1 says entered g2 step 1)");
  CHECK(has(scene.tell("2s host 0 says exited 5 signal 9"), "restart_refused"));
}

TEST_CASE("a change of size never counts as a failure") {
  Scene scene = training("min 1 max-restarts 0");
  scene.play(R"(1s slots 1
                1 2 say prepared g2
                1 says entered g2 step 1
                1 says committed g2 step 2)");
  const std::string said = scene.tell("2s host 0 says exited 2 signal 15");
  CHECK(has(said, "expected=yes"));
  CHECK_FALSE(has(said, "phase"));
}

TEST_CASE("a worker that does not become ready is killed once, and replaced when it is gone") {
  Scene scene(job_stage, "min 1");
  scene.play(R"(0s slots 2
                host 0 up
                1 says ready call 1 batch 8
                2 says join)");
  std::string said;
  for (int second = 4; second <= 304; second += 4)
    said += scene.play(fmt::format(R"({}s host 0 says heartbeat
                                      1 2 say sample g0 none waiting 1ms in idle)",
                                   second));
  const std::string kill = "host 0: stop 2 signal 9 grace 0 ms";
  REQUIRE(has(said, kill));
  CHECK(said.find(kill) == said.rfind(kill));
  CHECK(has(scene.tell("305s host 0 says exited 2 signal 9"), "was not ready to train within"));
}

TEST_CASE("a worker that starts when training ends is not waited for, and causes no busy loop") {
  Scene scene = training();
  std::string said = scene.play(R"(1s slots 3
                                   host 0 says started 3
                                   3 says join
                                   1 2 say done call 1 step 9)");
  CHECK(has(said, "phase: trained"));
  // on_epoch of the last epoch may take long. The scene fails when a wake-up stays due for ever.
  for (int second = 4; second <= 400; second += 4)
    scene.play(fmt::format(R"({}s host 0 says heartbeat
                              1 2 3 say sample g1 step 9 waiting 1ms in epoch)",
                           second));
  said = scene.play("401s host 0 says exited 1 code 0\n host 0 says exited 2 code 0");
  CHECK(has(said, "stop 3 signal 15"));
}

TEST_CASE("a first world that never reaches its minimum is given up at last") {
  Scene scene(job_stage, "min 2");
  scene.play(R"(0s slots 2
                host 0 up
                1 says ready call 1 batch 8
                2 says join
                host 0 says exited 2 code 0)");
  std::string said;
  for (int second = 4; second <= 600; second += 4)
    said += scene.play(fmt::format(R"({}s host 0 says heartbeat
                                      1 says sample g0 none waiting 1ms in idle)",
                                   second));
  CHECK(has(said, "stop 1 signal 15"));
  said = scene.play("601s host 0 says exited 1 code 0\n host 0 down: closed");
  CHECK(has(said, "finish 122: fewer than 2 workers"));
}

TEST_CASE("a leaver is left alone until its new world has stepped, and then may end by itself") {
  Scene scene = training();
  std::string said = scene.play(R"(1s slots 1
                                   1 2 say prepared g2
                                   1 says entered g2 step 5)");
  CHECK_FALSE(has(said, "stop 2"));
  said = scene.tell("1 says committed g2 step 6");
  CHECK(has(said, "to 2: dismiss"));
  CHECK_FALSE(has(said, "stop 2"));
  scene.tell("5s 1 2 say sample g2 step 9 waiting 1ms in compute");
  scene.tell("9s 1 2 say sample g2 step 9 waiting 1ms in compute");
  CHECK(has(scene.tell("11s host 0 says heartbeat"), "stop 2 signal 15"));
}

TEST_CASE("the time that a leaver has to end starts only when it is out of on_epoch") {
  Scene scene = training();
  scene.play(R"(1s slots 1
                1 2 say prepared g2
                1 says entered g2 step 5
                1 says committed g2 step 6)");
  std::string said;
  for (int second = 5; second <= 45; second += 4) {
    scene.tell(fmt::format("{}s 1 says sample g2 step 9 waiting 1ms in compute", second));
    said += scene.tell(fmt::format("2 says sample g1 step 5 waiting {}s in epoch", second));
    said += scene.tell("host 0 says heartbeat");
  }
  CHECK_FALSE(has(said, "stop 2"));
  scene.tell("49s 1 2 say sample g2 step 9 waiting 1ms in compute");
  scene.tell("53s 1 2 say sample g2 step 9 waiting 1ms in compute");
  CHECK(has(scene.tell("56s host 0 says heartbeat"), "stop 2 signal 15"));
}

TEST_CASE("the first failure of a plain program determines the exit code") {
  struct Case {
    const char* report;
    const char* finish;
  };
  const Case cases[] = {
      {"exited 1 code 0", "finish 0"},
      {"exited 1 code 7", "finish 7"},
      {"exited 1 code 75", "finish 75: "},  // no save of ours
      {"exited 1 signal 9", "finish 137"},
      {"failed 1 code 126: not executable", "finish 126"},
      {"failed 1 code 127: not found", "finish 127"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.report);
    Scene scene(job_stage, "min 1");
    scene.play("0s slots 1\n host 0 up");
    scene.tell(std::string("host 0 says ") + c.report);
    CHECK(has(scene.tell("host 0 down: closed"), c.finish));
  }
}

TEST_CASE("interrupts: the signal sets the exit code, HUP counts as TERM, a later one kills") {
  struct Case {
    int signal;
    const char* finish;
  };
  for (const Case& c : {Case{2, "finish 130"}, Case{15, "finish 143"}, Case{1, "finish 143"}}) {
    Scene scene = training();
    CHECK(has(scene.tell(fmt::format("interrupt {}", c.signal)), "stop 2 signal 15 grace 10.0 s"));
    CHECK(scene.tell(fmt::format("interrupt {}", c.signal)).empty());  // a copy
    const std::string again = scene.tell(fmt::format("5s interrupt {}", c.signal));
    CHECK(has(again, "stop 1 signal 9 grace 0 ms"));
    CHECK(has(again, "stop 2 signal 9 grace 0 ms"));
    scene.play("host 0 says exited 1 signal 9\n host 0 says exited 2 signal 9");
    CHECK(has(scene.tell("host 0 down: closed"), c.finish));
  }
}

TEST_CASE("nothing is started once the job ends") {
  Scene scene = training();
  std::string said = scene.play(R"(interrupt 15
                                   slots 4
                                   host 0 says exited 1 code 0
                                   2 says ready call 1 batch 8)");
  CHECK_FALSE(has(said, "start "));
  CHECK_FALSE(has(said, "planned\":true"));
}

TEST_CASE("a worker that left by itself does not share the mistake of the others") {
  Scene scene = training();
  std::string said = scene.play(R"(1s 1 says leave: the program closed its job
                                   2s host 0 says exited 2 signal 6)");
  CHECK(has(said, "stop 1 signal 15"));
  said += scene.play(R"(host 0 says exited 1 code 0
                        host 0 down: closed)");
  CHECK(has(said, "finish 134: worker 2 (rank 1, n0 slot 1) was killed by signal 6"));
}

TEST_CASE("a host can report only about its own workers") {
  Scene scene(job_stage, "min 1");
  scene.play(R"(0s slots 1 1
                host 0 up
                host 1 up)");
  CHECK(scene.tell("1s host 1 says started 1") == "");
  CHECK(scene.tell("1s host 1 says exited 1 code 1") == "");
  CHECK(has(scene.tell("1s host 0 says started 1"), "worker_started"));
  CHECK(has(scene.tell("1s host 0 says exited 1 code 1"), "worker_exited"));
}

TEST_CASE("when the last holder of the state dies, the job ends with 122 and says so") {
  Scene scene = training();
  std::string said = scene.play(R"(1s host 0 says exited 1 signal 9
                                   host 0 says exited 2 signal 9)");
  said += scene.play("host 0 says exited 3 signal 15\n host 0 down: closed");
  CHECK(has(said, "finish 122: state lost"));
}

}  // namespace
}  // namespace elasticrun::scenarios
