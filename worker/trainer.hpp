// train(): the loop of steps. compute, reduce, apply, commit, until the samples are used.
//
// A step that a change of the world cuts short has changed nothing that is registered, so it is
// begun again from the progress as it stands, with the same samples, in whatever world comes next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/presence.hpp"
#include "worker/reduction.hpp"
#include "worker/sampler.hpp"
#include "worker/state_watch.hpp"
#include "worker/step.hpp"

namespace elasticrun::worker {

struct Callbacks {
  elasticrun_compute_fn compute = nullptr;
  elasticrun_apply_fn apply = nullptr;
  void* user = nullptr;
  elasticrun_epoch_fn epoch = nullptr;
  void* epoch_user = nullptr;
};

class Trainer {
 public:
  // Of a sealed table.
  explicit Trainer(Presence& presence);

  // Returns when this call of train is over; throws Stop. Options are checked by the caller.
  void train(const elasticrun_train_options& options, const Callbacks& callbacks);
  // The samples of this worker's coming steps, if the world stays as it is.
  std::size_t upcoming(std::uint64_t* samples, std::size_t count) const;

 private:
  // This worker's part of one step.
  struct Part {
    Range range;  // places of the whole step
    Range own;
    std::vector<std::int64_t> pieces;
  };

  void begin_call();
  void call_due_epochs();
  void step();
  Part part_of(const Progress& progress) const;
  const Permutation& order(std::int64_t epoch);
  void explain_step();
  void compute(const Part& part);
  void check_state();
  bool reduce_and_apply(const Part& part);
  double reduce();
  double gain(const Part& part) const;
  void weigh_noise(const Part& part);
  void keep_noise(const Part& part, Progress& next);
  void check_agreement(Group& group);
  void agree_on_names(Group& group);
  void commit(const Part& part);
  [[noreturn]] void callback_failed(const char* which, int code);

  Presence& presence_;
  Reduction reduction_;
  StateWatch watch_;
  elasticrun_train_options options_{};
  Callbacks callbacks_;
  std::int64_t call_ = 0;  // this call of train, from 1
  bool training_ = false;
  bool in_step_ = false;            // progress is still that of the step before
  std::int64_t epochs_called_ = 0;  // on_epoch was called up to here
  Generation explained_;            // world whose first step was explained
  std::optional<std::pair<Generation, std::int64_t>> agreed_;  // world and call that were checked
  elasticrun_step step_;
  NoiseScale noise_;                    // the progress's, and from the reduction on with this step
  std::vector<std::uint64_t> samples_;  // of the share
  std::optional<Permutation> order_;
  std::uint64_t order_seed_ = 0;
  std::int64_t order_epoch_ = -1;
  Time begun_{};
  Meter::StepCost cost_;
};

}  // namespace elasticrun::worker
