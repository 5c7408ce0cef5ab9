// What one seed decides before anything moves: the cluster, the job, and how much goes wrong.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.hpp"
#include "job/spec.hpp"

namespace elasticrun::simulate {

struct Scene {
  std::uint64_t seed = 0;
  int hosts = 1;
  int slots_per_host = 1;
  std::int64_t samples = 0;  // an epoch
  std::int64_t epochs = 1;
  int train_calls = 1;
  Duration compute{};            // of one step
  bool mixed = false;            // every other worker takes three times as long
  Duration first_fault{};        // not before
  Duration fault_every{};        // mean time between two faults
  Duration faults_until{};       // from the start; then everything is healed
  bool planned = true;           // a person changes size and hosts, too
  bool interrupted = false;      // a person stops the job in the end
  bool controller_dies = false;  // in the end
  job::JobSpec spec;
};

Scene draw(std::uint64_t seed);
// Every choice in one line, for a person who replays the seed.
std::string describe(const Scene& scene);

}  // namespace elasticrun::simulate
