#include "simulate/scene.hpp"

#include <fmt/format.h>

namespace elasticrun::simulate {

using std::chrono::milliseconds;

Scene draw(std::uint64_t seed) {
  Rng rng(mix(seed ^ 0x5ce9e));
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  Scene scene;
  scene.seed = seed;
  scene.hosts = rng.chance(0.1) ? 1 : between(2, 5);
  scene.slots_per_host = between(1, 3);
  const int slots = scene.hosts * scene.slots_per_host;
  scene.epochs = between(1, 3);
  scene.train_calls = rng.chance(0.2) ? 2 : 1;
  scene.compute = milliseconds(between(4, 20));
  scene.first_fault = milliseconds(rng.chance(0.2) ? 1 : between(60, 400));
  scene.fault_every = milliseconds(between(30, 600));
  scene.faults_until = milliseconds(between(500, 4000));
  scene.planned = rng.chance(0.8);
  scene.interrupted = rng.chance(0.1);
  scene.controller_dies = rng.chance(0.1);

  job::JobSpec& spec = scene.spec;
  spec.argv = {"train"};
  spec.hosts_file = "hosts.txt";  // which a person edits
  spec.limits.min = rng.chance(0.3) ? between(1, slots) : 1;
  if (rng.chance(0.5)) spec.start = between(spec.limits.min, slots);
  spec.unit = launcher::Unit::slot;
  spec.batch.batch = between(1, 8);
  spec.batch.max_batch = spec.batch.batch * between(1, slots);
  spec.policy = rng.chance(0.3) ? "throughput" : "fixed";
  spec.max_restarts = rng.chance(0.1) ? between(0, 3) : 1000;
  scene.samples = spec.batch.max_batch * between(30, 90) + between(0, 3);

  job::Deadlines& d = spec.deadlines;
  d.beat = milliseconds(20);
  d.agent_timeout = milliseconds(120);
  d.lease = milliseconds(250);
  d.abort_timeout = milliseconds(100);
  d.prepare_timeout = milliseconds(200);
  d.start_timeout = milliseconds(500);
  d.hung = milliseconds(400);
  d.grace = d.orphan_grace = milliseconds(100);
  d.settle = milliseconds(100);
  d.sample_interval = milliseconds(20);
  d.minimum_timeout = milliseconds(4000);
  if (rng.chance(0.4)) spec.spares = between(1, 2);
  // Frozen workers make the others look fast and themselves slow: some are replaced.
  if (rng.chance(0.5)) d.straggler_time = milliseconds(between(40, 400));
  scene.mixed = rng.chance(0.3);
  return scene;
}

std::string describe(const Scene& scene) {
  const auto& spec = scene.spec;
  return fmt::format(
      "SEED={} hosts={} slots={} min={} start={} policy={} batch={} max_batch={} samples={} "
      "epochs={} "
      "calls={} compute={} mixed={} first_fault={} fault_every={} faults_until={} planned={} "
      "interrupted={} "
      "controller_dies={} max_restarts={} spares={} straggler_time={}",
      scene.seed, scene.hosts, scene.slots_per_host, spec.limits.min, spec.start, spec.policy,
      spec.batch.batch, spec.batch.max_batch, scene.samples, scene.epochs, scene.train_calls,
      to_text(scene.compute), scene.mixed, to_text(scene.first_fault), to_text(scene.fault_every),
      to_text(scene.faults_until), scene.planned, scene.interrupted, scene.controller_dies,
      *spec.max_restarts, spec.spares, to_text(spec.deadlines.straggler_time));
}

}  // namespace elasticrun::simulate
