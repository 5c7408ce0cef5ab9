// See scene.hpp.
#include "simulate/faults/scene.hpp"

namespace elasticrun::simulate::faults {

job::JobSpec plain_spec() {
  using std::chrono::milliseconds;
  job::JobSpec spec;
  spec.argv = {"train"};
  spec.hosts_file = "hosts.txt";  // users edit it during the run
  spec.unit = launcher::hosts::Unit::slot;
  job::Deadlines& d = spec.deadlines;
  d.heartbeat = milliseconds(20);
  d.agent_timeout = milliseconds(120);
  d.lease = milliseconds(250);
  d.abort_timeout = milliseconds(100);
  d.prepare_timeout = milliseconds(200);
  d.transfer_timeout = milliseconds(150);
  d.start_timeout = milliseconds(500);
  d.hung = milliseconds(400);
  d.grace = d.orphan_grace = milliseconds(100);
  d.settle = milliseconds(100);
  d.sample_interval = milliseconds(20);
  d.minimum_timeout = milliseconds(20'000);
  return spec;
}

Scene draw(std::uint64_t seed) {
  using std::chrono::milliseconds;
  Rng rng(mix(seed ^ 0x5ce9e));
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  Scene scene;
  scene.seed = scene.dice = seed;
  scene.hosts = rng.chance(0.1) ? 1 : between(2, 5);
  scene.slots_per_host = between(1, 3);
  const int slots = scene.hosts * scene.slots_per_host;
  scene.epochs = between(1, 3);
  scene.train_calls = rng.chance(0.2) ? 2 : 1;
  scene.compute = milliseconds(between(4, 20));
  scene.epoch_end = rng.chance(0.1) ? milliseconds(700) : milliseconds(between(0, 40));
  scene.faults_until = milliseconds(between(500, 4000));
  scene.merciful = rng.chance(0.85);
  scene.only_newcomers = rng.chance(0.12);
  if (scene.only_newcomers) scene.epoch_end = std::min(scene.epoch_end, Duration(milliseconds(40)));
  scene.interrupted = rng.chance(0.1);
  scene.controller_dies = rng.chance(0.05);
  scene.mixed = rng.chance(0.3);

  job::JobSpec& spec = scene.spec;
  spec = plain_spec();
  spec.limits.min = rng.chance(0.3) ? between(1, slots) : 1;
  if (rng.chance(0.4)) spec.limits.max = between(spec.limits.min, slots);
  const int most = spec.limits.max > 0 ? spec.limits.max : slots;
  if (rng.chance(0.5)) spec.start = between(spec.limits.min, most);
  spec.batch.batch = between(1, 8);
  spec.batch.max_batch = spec.batch.batch * between(1, slots);
  spec.policy = rng.chance(0.3) ? "throughput" : "fixed";
  spec.max_restarts = rng.chance(0.05) ? between(0, 3) : 1000;
  scene.samples = spec.batch.max_batch * between(30, 90) + between(0, 3);
  if (rng.chance(0.4)) spec.spares = between(1, 2);
  // Frozen workers make the others look fast and themselves slow: some are replaced.
  if (rng.chance(0.5)) spec.deadlines.straggler_time = milliseconds(between(40, 400));
  if (rng.chance(0.4)) spec.deadlines.minimum_timeout = milliseconds(rng.chance(0.5) ? 800 : 4000);

  FaultChoice choice{.hosts = scene.hosts,
                     .slots_per_host = scene.slots_per_host,
                     .first = milliseconds(rng.chance(0.1) ? 1 : between(60, 400)),
                     // Faults of newcomers are spaced, because each may cost the others some time.
                     .every = milliseconds(between(scene.only_newcomers ? 150 : 30, 600)),
                     .until = scene.faults_until,
                     .people = rng.chance(0.8),
                     .only_newcomers = scene.only_newcomers};
  scene.only_leavers = !scene.only_newcomers && rng.chance(0.05);
  choice.only_leavers = scene.only_leavers;
  scene.faults = draw_faults(choice, rng);

  if (rng.chance(0.25)) {
    spec.saving.folder = "/saves";
    if (rng.chance(0.7)) spec.saving.every = milliseconds(between(50, 800));
    spec.deadlines.save_timeout = milliseconds(rng.chance(0.2) ? 100 : 3000);
    scene.interrupted |= rng.chance(0.3);
  }
  if (rng.chance(0.2)) spec.slurm_shrink = milliseconds(between(10, 1500));
  if (rng.chance(0.15)) scene.gradients = between(2, 5);
  return scene;
}

}  // namespace elasticrun::simulate::faults
