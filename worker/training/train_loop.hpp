// train(): the loop of steps. compute, reduce, apply, commit, until the samples are used.
//
// A step that a change of the world cuts short has changed nothing that is registered, so it is
// begun again from the progress as it stands, with the same samples, in whatever world comes next.
//
// An epoch has ended when the first step of the next one commits, or all have said that they are
// done: a world that forms before that calls on_epoch again, on every member, for whoever was to
// save there may be gone. So on_epoch may not change what is registered, which would happen to some
// members and not to others, or twice.
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
  // Of a sealed table.
  explicit TrainLoop(control::WorldSession& session);

  // Returns when this call of train is over; throws Stop. Options are checked by the caller.
  void train(const elasticrun_train_options& options, const Callbacks& callbacks);
  // The samples of this worker's coming steps, if the world stays as it is.
  std::size_t upcoming(std::uint64_t* samples, std::size_t count) const;

 private:
  // This worker's part of one step.
  struct Part {
    core::Range range;  // places of the whole step
    core::Range own;
    std::vector<std::int64_t> pieces;
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
  double reduce(const Part& part);
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
  std::int64_t call_ = 0;  // this call of train, from 1
  bool training_ = false;
  bool in_step_ = false;                          // progress is still that of the step before
  std::optional<EpochEnd> ended_;                 // for which on_epoch was called last
  std::optional<state::Fingerprint> ended_with_;  // the state, when the last call returned
  Generation explained_;                          // world whose first step was explained
  std::optional<std::pair<Generation, std::int64_t>> agreed_;  // world and call that were checked
  elasticrun_step step_;
  core::NoiseScale noise_;              // the progress's, and from the reduction on with this step
  std::vector<std::uint64_t> samples_;  // of the share
  std::optional<core::Permutation> order_;
  std::uint64_t order_seed_ = 0;
  std::int64_t order_epoch_ = -1;
  Time begun_{};
  control::StepMeter::StepCost cost_;
};

}  // namespace elasticrun::worker::training
