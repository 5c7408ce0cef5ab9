// What one seed decides before anything moves: the cluster, the job, and what goes wrong when.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "job/spec.hpp"
#include "simulate/faults/fault.hpp"

namespace elasticrun::simulate::faults {

struct Scene {
  std::uint64_t seed = 0;
  std::uint64_t dice = 0;  // every delay, and what else is up to chance while it runs
  int hosts = 1;
  int slots_per_host = 1;
  std::int64_t samples = 0;  // an epoch
  std::int64_t epochs = 1;
  int train_calls = 1;
  Duration compute{};            // of one step
  Duration epoch_end{};          // of the program's on_epoch, at most
  bool mixed = false;            // every other worker takes three times as long
  Duration faults_until{};       // from the start; then everything is healed
  bool merciful = true;          // what would leave no majority with the state does not happen
  bool only_newcomers = false;   // are struck
  bool interrupted = false;      // a person stops the job in the end
  bool controller_dies = false;  // in the end
  job::JobSpec spec;
  std::vector<Fault> faults;  // in order
};

Scene draw(std::uint64_t seed);
// The same in every run: deadlines about a hundredth of the real ones.
job::JobSpec plain_spec();

}  // namespace elasticrun::simulate::faults
