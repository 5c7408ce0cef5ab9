// What must hold under all faults: the rules of how worlds change, in one file.
//
// The simulation reports what really happens in its processes (not what the controller believes).
// Each rule is checked at the moment it could first be broken, and a violation names the rule.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "job/core/terms/events.hpp"
#include "launcher/hosts/plan.hpp"
#include "simulate/faults/bucket_thread.hpp"
#include "wire/messages.hpp"
#include "worker/core/progress.hpp"

namespace elasticrun::simulate::faults {

struct Violation : std::runtime_error {
  Violation(std::string name, const std::string& text)
      : std::runtime_error(name + ": " + text), rule(std::move(name)) {}
  std::string rule;
};

// The model of a simulated program: the progress of training, and a digest of every update made.
struct Model {
  worker::core::Progress progress;
  std::uint64_t digest = 1;
};
std::uint64_t updated(std::uint64_t digest, const worker::core::Progress& before,
                      worker::core::Range range);

class Invariants {
 public:
  Invariants(std::int64_t samples, std::int64_t epochs, int train_calls,
             const launcher::hosts::Limits& limits)
      : samples_(samples), epochs_(epochs), train_calls_(train_calls), limits_(limits) {}

  // ---- what happens
  void prepared(const wire::World& world);  // the controller sends it
  void reduction_complete(Generation generation);
  // A worker applies the step. A worker that was frozen may see its reduction complete after its
  // lease has ended, and must not apply the step then.
  void applies(Generation generation);
  void committed(WorkerId worker, Generation generation, const worker::core::Progress& before,
                 worker::core::Range range, std::uint64_t digest);
  // on_epoch has finished on rank 0 of that world, after that step.
  void epoch_ended(Generation generation, std::int64_t step);
  void answered(WorkerId worker, Generation up_to, StepId committed);
  void transferred(Generation generation, const std::vector<Model>& holders);
  void received(WorkerId worker, StepId before, StepId after);
  void started_fresh(WorkerId worker, Generation generation);
  void process_gone(WorkerId worker) { gone_.insert(worker); }
  // The program of a worker leaves by itself after this step: no other worker takes its place.
  void leaves(WorkerId worker, StepId step);
  void enters(WorkerId worker, Generation generation, StepId step);
  // Workers leave in this run, and no other fault happens: then enters() is checked.
  void only_leavers() { only_leavers_ = true; }
  // A worker begins in a slot in which there is another; `kept`: the kernel does not let that go.
  void slot_taken(WorkerId worker, WorkerId other, bool kept);
  // A worker writes its part of a save.
  void saved(std::int64_t number, Generation generation, const Model& model);
  // `stopping`: the controller told its workers to end before this action.
  void controller_says(const job::JobAction& action, bool stopping);
  // The controller has asked for another tick without time passing, `times` times in a row.
  void woken_again(int times);
  // A worker that no fault has hit is killed, while `faulty` is one that a fault has hit, if any.
  void killed(WorkerId worker, std::optional<WorkerId> faulty);
  // The controller says that the state is lost; `holder` is a live, reachable worker that holds it,
  // if there is one. `whole_soon`: a save of it is being made whole.
  void state_lost(std::optional<WorkerId> holder, bool whole_soon);
  // The job has finished; for after_the_end(), all deadlines have passed as well.
  void finished(int exit_code, const std::string& words, bool interrupted, bool somebody_exited,
                const std::vector<Model>& final_models);
  void stopped(int exit_code, std::size_t whole_saves);
  void after_finish(std::size_t actions);
  void after_the_end(std::size_t processes_left);

  // ---- gradients in buckets (bucket_invariants.cpp)
  // A worker starts reducing a bucket in a group that it still uses.
  void bucket_started(WorkerId worker, Generation generation, std::int64_t step,
                      const BucketThread::Start& start);
  void bucket_ended(WorkerId worker, Generation generation, std::int64_t step);
  // The worker is about to commit that step, which has that many buckets.
  void whole_step(WorkerId worker, Generation generation, std::int64_t step, std::size_t buckets);

  bool is_newest(StepId step) const {
    return lineage_.empty() || step.value >= lineage_.rbegin()->first;
  }

 private:
  struct Committed {
    Generation generation;
    worker::core::Progress before;
    worker::core::Range range;
    std::uint64_t digest = 0;
  };
  void check_lineage(const Model& final) const;
  bool all_have_left() const;

  std::int64_t samples_, epochs_;
  int train_calls_;
  launcher::hosts::Limits limits_;
  std::set<WorkerId> left_;                // by themselves
  std::int64_t left_at_ = no_state.value;  // the newest step after which one left
  bool only_leavers_ = false;
  Generation newest_prepared_;
  Generation newest_reduced_;
  std::set<Generation> late_;                  // reduced a step after a newer world had reduced one
  std::map<std::int64_t, Committed> lineage_;  // by step: the commit of the highest generation
  std::map<std::int64_t, Generation> epochs_ended_;  // by an epoch's last step: the newest world
  std::map<WorkerId, Generation> answered_;
  struct Stand {
    std::int64_t step = 0;
    Generation world;  // the world in which it committed that step; none: it received the state
  };
  std::map<WorkerId, Stand> stands_;
  std::map<Generation, std::set<WorkerId>> worlds_;   // that the controller has prepared
  std::map<Generation, std::set<WorkerId>> entered_;  // which of their members have entered them
  struct SavedAs {
    Generation generation;
    std::int64_t step = 0;
    std::uint64_t digest = 0;
    bool operator==(const SavedAs&) const = default;
  };
  std::map<std::int64_t, SavedAs> saves_;  // by the number of the save, its first part
  // What the members of a world have reduced in a step.
  struct Reduced {
    std::vector<std::vector<std::size_t>> order;     // by bucket, as first started, its gradients
    std::map<WorkerId, std::size_t> started, ended;  // number of buckets
  };
  std::map<std::pair<Generation, std::int64_t>, Reduced> reduced_;
  std::set<WorkerId> gone_;
  std::set<WorkerId> dismissed_;
};

}  // namespace elasticrun::simulate::faults
