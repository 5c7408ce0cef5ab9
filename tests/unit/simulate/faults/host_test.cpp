// What happens to a simulated host stays within what the design claims to survive.
#include "simulate/faults/host.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace elasticrun::simulate;
using namespace elasticrun::simulate::faults;
using namespace std::chrono_literals;

TEST_CASE("an agent that was frozen beyond its lease kills its workers when it continues") {
  const Scene scene = draw(1);
  const Duration lease = scene.spec.deadlines.lease;
  Queue queue;
  Rng rng(1);
  Plane plane(queue, rng);
  Invariants invariants(scene.samples, scene.epochs, scene.train_calls, scene.spec.limits);
  Stepping stepping(false);
  Stage stage{scene, queue, rng, plane, invariants, stepping, {}, {}};
  const auto agent =
      std::make_shared<Agent>(stage, Agent::Handlers{.up = [] {},
                                                     .down = [](const auto&) {},
                                                     .message = [](auto, const auto&) {},
                                                     .report = [](const auto&) {}});
  const Time begin = queue.now();
  const auto run_until = [&](Duration time) {
    while (queue.next_at() <= begin + time) queue.run_next();
  };

  agent->begin();
  agent->order(wire::agent::StartWorker{WorkerId(1), 0, {"train"}, {}, {}});
  run_until(lease / 2);
  agent->cut();
  agent->close(launcher::agent::GivenUp{"given up"});
  queue.at(begin + lease - 15ms, [&] {
    agent->heal();
    agent->freeze(false, 200ms);  // before it can notice that
  });
  run_until(lease + 180ms);
  CHECK(agent->workers().at(WorkerId(1))->alive());
  run_until(lease + 200ms);
  CHECK_FALSE(agent->workers().at(WorkerId(1))->alive());
}
