// What one seed determines before the run starts: the cluster, the job, and its faults in time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "job/spec.hpp"
#include "simulate/faults/fault.hpp"

namespace elasticrun::simulate::faults {

struct Scene {
  std::uint64_t seed = 0;
  std::uint64_t dice = 0;  // seed of every delay and other random choice during the run
  int hosts = 1;
  int slots_per_host = 1;
  std::int64_t samples = 0;  // per epoch
  std::int64_t epochs = 1;
  int train_calls = 1;
  Duration compute{};            // duration of one step's compute
  Duration epoch_end{};          // longest duration of the program's on_epoch
  int gradients = 0;             // reduced in buckets during compute; 0: nothing is
  bool mixed = false;            // every other worker takes three times as long
  Duration faults_until{};       // since the start; then everything is healed
  bool merciful = true;          // faults that would leave no majority with the state are skipped
  bool only_newcomers = false;   // only newcomers are struck
  bool only_leavers = false;     // workers leave by themselves, and nothing else happens
  bool interrupted = false;      // a user stops the job in the end
  bool controller_dies = false;  // the controller dies in the end
  job::JobSpec spec;
  std::vector<Fault> faults;  // in order of time
};

Scene draw(std::uint64_t seed);
// The part of the job that is the same in every run; deadlines are about a hundredth of real ones.
job::JobSpec plain_spec();

}  // namespace elasticrun::simulate::faults
