// When a transfer of the state counts as standing still.
#include "rendezvous/transfer_watch.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace elasticrun::rendezvous;
using namespace std::chrono_literals;

namespace {

const Time begin = Time{} + 1h;

struct Scene {
  TransferWatch watch;

  explicit Scene(std::uint64_t state_bytes = 0,
                 const std::vector<WorkerId>& training = {WorkerId(1), WorkerId(2)}) {
    watch.begin({{WorkerId(1), HostId(), 0, true}, {WorkerId(2), HostId(), 0, false}}, state_bytes,
                30s, training, begin);
  }
  void says(std::uint32_t worker, const char* phase, std::uint64_t bytes, Duration at,
            Duration since = {}) {
    wire::Sample sample;
    sample.phase = phase;
    sample.waiting_ns = since.count();
    sample.transfer_bytes = bytes;
    watch.sample(WorkerId(worker), sample, begin + at);
  }
};

}  // namespace

TEST_CASE("the timeout runs when a member is in the transfer and none is in the program") {
  Scene scene;
  CHECK(scene.watch.deadline() == never);
  scene.says(2, "transfer", 0, 1s);
  CHECK(scene.watch.deadline() == never);  // nothing is known of 1 yet
  for (const char* busy : {"compute", "reduce", "apply", "epoch"}) {
    scene.says(1, busy, 0, 2s);
    CHECK(scene.watch.deadline() == never);
  }
  scene.says(1, "idle", 0, 3s);  // about to enter
  CHECK(scene.watch.deadline() == begin + 33s);
  scene.says(1, "transfer", 0, 4s);
  CHECK(scene.watch.deadline() == begin + 34s);
  scene.says(1, "transfer", 0, 20s);
  scene.says(2, "transfer", 0, 20s);
  CHECK(scene.watch.deadline() == begin + 34s);
}

TEST_CASE("transferred bytes are progress, and so is a member that enters") {
  Scene scene;
  scene.says(1, "transfer", 0, 0s);
  scene.says(2, "transfer", 0, 0s);
  scene.says(1, "transfer", 100, 10s);
  CHECK(scene.watch.deadline() == begin + 40s);
  scene.says(2, "transfer", 100, 20s);
  CHECK(scene.watch.deadline() == begin + 50s);
  scene.watch.entered(WorkerId(1), begin + 25s);
  CHECK(scene.watch.deadline() == begin + 55s);
  // it steps in the new world, so it is no longer part of the transfer
  scene.says(1, "compute", 0, 26s);
  CHECK(scene.watch.deadline() == begin + 55s);
  scene.watch.entered(WorkerId(2), begin + 27s);
  CHECK(scene.watch.deadline() == never);
}

TEST_CASE("a large state has more time") {
  Scene scene(100'000'000'000);
  scene.says(1, "idle", 0, 0s);
  scene.says(2, "transfer", 0, 0s);
  CHECK(scene.watch.deadline() == begin + 530s);
  scene.watch.end();
  CHECK(scene.watch.deadline() == never);
}

TEST_CASE("a member outside the present world that hangs in an earlier group is stuck") {
  Scene scene(0, {WorkerId(1)});
  scene.says(1, "idle", 0, 1s);
  CHECK(scene.watch.deadline() == never);
  for (const char* phase : {"reduce", "transfer"}) {
    scene.says(2, phase, 0, 2s, 10s);
    CHECK(scene.watch.deadline() == begin + 32s);
    CHECK(scene.watch.stuck() == std::vector{WorkerId(2)});
  }
  scene.says(2, "transfer", 0, 3s, 1s);  // its wait began with this transfer
  CHECK(scene.watch.stuck().empty());
}

TEST_CASE("members of a world that still trains may be in its reductions") {
  Scene scene;
  scene.says(1, "idle", 0, 1s);
  scene.says(2, "reduce", 0, 2s, 10s);
  CHECK(scene.watch.deadline() == never);
  CHECK(scene.watch.stuck().empty());
}
