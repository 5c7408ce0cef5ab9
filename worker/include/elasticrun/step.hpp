// elasticrun/step.hpp: what the functions of a program get and throw; included by elasticrun.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "elasticrun/elasticrun.h"

namespace elasticrun {

// EVICTED: this worker is out of the world for good. Uncaught, it ends the process quietly with 0.
struct Evicted : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// WORLD_CHANGED, only in a loop of one's own: nothing since the last commit happened, and nothing
// of it is left in registered memory. Undo nothing; begin the step that committed() names.
struct WorldChanged : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// MISUSE: a mistake in the program.
struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};
// FAILED: the environment failed: no agent, no memory, no network.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A view of the present world of a job, which must outlive it. After a change it shows the new
// world. Nothing here throws.
class World {
 public:
  World(const elasticrun_job* job) : job_(job) {}
  // This worker's rank, 0 to size() - 1; 0 before the first world.
  int rank() const { return elasticrun_rank(job_); }
  // Number of ranks; 1 before the first world.
  int size() const { return elasticrun_size(job_); }
  // Grows with each new world; 0 before the first one.
  std::uint64_t generation() const { return elasticrun_generation(job_); }

 private:
  const elasticrun_job* job_;
};

// The step under way: handed to compute and apply, valid until they return.
class Step {
 public:
  explicit Step(elasticrun_step* step) : step_(step) {}

  // The sample indices in [0, samples) to compute in this call; in apply, this worker's whole
  // share.
  std::span<const std::uint64_t> samples() const {
    std::size_t count = 0;
    const std::uint64_t* first = elasticrun_step_samples(step_, &count);
    return {first, count};
  }
  // After next: whether reduce follows, and not next; at the end of an epoch, how many are over.
  bool last_piece() const { return elasticrun_step_last_piece(step_) != 0; }
  std::int64_t epochs_done() const { return elasticrun_step_epochs_done(step_); }
  // Number of steps committed before this one, over all calls of train, from 0.
  std::int64_t number() const { return elasticrun_step_number(step_); }
  // The epoch within this call of train, from 0.
  std::int64_t epoch() const { return elasticrun_step_epoch(step_); }
  // The global batch of this step in samples; the last one of an epoch may be smaller.
  std::int64_t global_batch() const { return elasticrun_step_global_batch(step_); }
  // Whether this is the last step of an epoch: the place in apply for what changes with the epoch.
  bool ends_epoch() const { return elasticrun_step_ends_epoch(step_) != 0; }
  // In apply: the factor for the learning rate in this step, as --lr-rule sets it.
  double lr_factor() const { return elasticrun_step_lr_factor(step_); }

  // In compute, from any thread: a gradient is final, and may be reduced while others are computed;
  // by its name, or faster by its number in the order of registration. See elasticrun.h. Throw
  // Misuse when there is none, Failed when the GPU fails.
  void ready(std::size_t gradient) { check("ready", elasticrun_step_ready(step_, gradient)); }
  void ready(const std::string& name) { ready(gradient(name)); }
  // The same of several that are not in the registered memory, but each at its place of `data`; see
  // elasticrun_step_ready_at. Throws Misuse, too, when data is shorter than gradients.
  void ready(std::span<const std::size_t> gradients, std::span<const void* const> data) {
    if (data.size() < gradients.size()) throw Misuse("step.ready: a gradient without data");
    check("ready",
          elasticrun_step_ready_at(step_, gradients.data(), data.data(), gradients.size()));
  }
  // Like ready, but this call of compute has not set it: it counts as zero.
  void unset(std::size_t gradient) { check("unset", elasticrun_step_unset(step_, gradient)); }
  void unset(const std::string& name) { unset(gradient(name)); }
  // In apply: whether any worker has set it in this step.
  bool is_set(std::size_t gradient) const { return elasticrun_step_is_set(step_, gradient) != 0; }
  bool is_set(const std::string& name) const { return is_set(gradient(name)); }
  // The number of a gradient. Throws Misuse: none has that name.
  std::size_t gradient(const std::string& name) const {
    const std::int64_t number = elasticrun_step_gradient(step_, name.c_str());
    if (number < 0) throw Misuse("step: there is no gradient " + name);
    return static_cast<std::size_t>(number);
  }
  // In compute: adds x to the sum called `name` (a metric such as the loss), which is reduced over
  // the world. Throws Misuse outside compute and for more than 32 names.
  void sum(const char* name, double x) {
    if (elasticrun_step_sum(step_, name, x) != ELASTICRUN_OK)
      throw Misuse(std::string("step.sum: more than 32 names, or not in compute: ") + name);
  }
  // In apply: the sum called `name` over the world; 0 for a name that no worker has used.
  double total(const char* name) const { return elasticrun_step_total(step_, name); }

 private:
  static void check(const char* what, elasticrun_status status) {
    if (status == ELASTICRUN_MISUSE)
      throw Misuse(std::string("step.") + what + ": there is no such gradient");
    if (status != ELASTICRUN_OK) throw Failed(std::string("step.") + what + ": the GPU has failed");
  }

  elasticrun_step* step_;
};

}  // namespace elasticrun
