// train(): the loop of steps. compute, reduce, apply, commit, until the samples are used.
//
// A step that a change of the world cuts short has changed no registered state, so it begins again
// from the present progress, with the same samples, in the next world.
//
// An epoch has ended when the first step of the next one commits, or all members have reported that
// they are done. A world that forms before that calls on_epoch again, on every member, for the rank
// that was to save something may be gone. So on_epoch must not change registered state: some
// members would make the change and others not, or make it twice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/control/world_session.hpp"
#include "worker/core/sampler.hpp"
#include "worker/state/fingerprint.hpp"
#include "worker/state/state_watch.hpp"
#include "worker/training/divergence.hpp"
#include "worker/training/gradient_reduction.hpp"
#include "worker/training/step.hpp"

namespace elasticrun::worker::training {

struct Callbacks {
  elasticrun_compute_fn compute = nullptr;
  elasticrun_apply_fn apply = nullptr;
  void* user = nullptr;
  elasticrun_epoch_fn epoch = nullptr;
  void* epoch_user = nullptr;
};

class TrainLoop {
 public:
  // The session's table is sealed.
  explicit TrainLoop(control::WorldSession& session);

  // Returns when this call of train is over; throws Stop. The caller has checked the options.
  void train(const elasticrun_train_options& options, const Callbacks& callbacks);
  // Writes at most `count` samples of this worker's coming steps, if the world stays as it is, and
  // returns their number.
  std::size_t upcoming(std::uint64_t* samples, std::size_t count) const;

 private:
  // This worker's part of one step.
  struct Part {
    core::Range range;                 // places of the whole step
    core::Range own;                   // places of this worker's share
    std::vector<std::int64_t> pieces;  // number of samples in each call of compute
    bool first_of_epoch = false, last_of_epoch = false;
  };
  struct EpochEnd {
    Generation generation;
    std::int64_t call = 0, epochs = 0;
    bool operator==(const EpochEnd&) const = default;
  };

  void begin_call();
  void end_epoch();
  void step();
  Part part_of(const core::Progress& progress) const;
  const core::Permutation& order(std::int64_t epoch);
  void explain_step();
  void compute(const Part& part);
  void check_state();
  bool reduce_and_apply(const Part& part);
  core::Votes reduce(const Part& part);
  double gain(const Part& part) const;
  void weigh_noise(const Part& part);
  void keep_noise(const Part& part, core::Progress& next);
  void check_agreement(collective::Group& group);
  void agree_on_names(collective::Group& group);
  [[noreturn]] void fail_together(collective::Group& group, const std::string& why);
  void commit(const Part& part);
  [[noreturn]] void callback_failed(const char* which, int code);

  control::WorldSession& session_;
  Reduction reduction_;
  Divergence divergence_;
  state::StateWatch watch_;
  elasticrun_train_options options_{};
  Callbacks callbacks_;
  std::int64_t call_ = 0;  // number of this call of train, from 1
  bool training_ = false;
  bool in_step_ = false;                          // progress does not yet include this step
  std::optional<EpochEnd> ended_;                 // the epoch end of the last call of on_epoch
  std::optional<state::Fingerprint> ended_with_;  // the state when the last call of train returned
  Generation explained_;                          // the world whose first step was reported
  std::optional<std::pair<Generation, std::int64_t>> agreed_;  // world and call last checked
  elasticrun_step step_;
  core::NoiseScale noise_;              // the estimate; includes this step after its reduction
  std::vector<std::uint64_t> samples_;  // sample indices of this worker's share
  std::optional<core::Permutation> order_;
  std::uint64_t order_seed_ = 0;
  std::int64_t order_epoch_ = -1;
  Time begun_{};
  control::StepMeter::StepCost cost_;
};

}  // namespace elasticrun::worker::training
