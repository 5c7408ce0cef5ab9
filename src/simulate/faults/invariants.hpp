// What must hold whatever goes wrong: the rules of how worlds change, in one file.
//
// The simulation tells what really happens in its processes (not what the controller believes);
// each rule is checked at the moment it could first be broken, and its name says which one it was.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "job/core/terms/events.hpp"
#include "launcher/hosts/plan.hpp"
#include "wire/messages.hpp"
#include "worker/core/progress.hpp"

namespace elasticrun::simulate::faults {

struct Violation : std::runtime_error {
  Violation(std::string name, const std::string& text)
      : std::runtime_error(name + ": " + text), rule(std::move(name)) {}
  std::string rule;
};

// The model of a simulated program: where training stands, and a digest of every update made.
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
  // Somebody does: one that was frozen may complete it after its lease, and must not apply it.
  void applies(Generation generation);
  void committed(WorkerId worker, Generation generation, const worker::core::Progress& before,
                 worker::core::Range range, std::uint64_t digest);
  // on_epoch is over on rank 0 of that world, after that step.
  void epoch_ended(Generation generation, std::int64_t step);
  void answered(WorkerId worker, Generation up_to, Step committed);
  void transferred(Generation generation, const std::vector<Model>& holders);
  void received(WorkerId worker, Step before, Step after);
  void started_fresh(WorkerId worker, Generation generation);
  void process_gone(WorkerId worker) { gone_.insert(worker); }
  // `stopping`: it told its workers to end before.
  void controller_says(const job::JobAction& action, bool stopping);
  // The controller asked for so many ticks at one and the same time.
  void woken_again(int times);
  // One that nothing has befallen is killed, and there is one to which something has.
  void killed(WorkerId worker, std::optional<WorkerId> faulty);
  // A live, reachable worker holds the state while the controller says that it is lost.
  void state_lost(std::optional<WorkerId> holder);
  // The job is over, and later: all deadlines have passed.
  void finished(int exit_code, const std::string& words, bool interrupted, bool somebody_left,
                const std::vector<Model>& final_models);
  void after_finish(std::size_t actions);
  void after_the_end(std::size_t processes_left);

  bool is_newest(Step step) const {
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

  std::int64_t samples_, epochs_;
  int train_calls_;
  launcher::hosts::Limits limits_;
  Generation newest_prepared_;
  Generation newest_reduced_;
  std::set<Generation> late_;                  // completed a reduction after a newer world had
  std::map<std::int64_t, Committed> lineage_;  // by step: of the highest generation
  std::map<std::int64_t, Generation> epochs_ended_;  // by their last step: newest world that did
  std::map<WorkerId, Generation> answered_;
  struct Stand {
    std::int64_t step = 0;
    Generation world;  // in which it committed that step; none: it received it
  };
  std::map<WorkerId, Stand> stands_;
  std::map<Generation, std::set<WorkerId>> worlds_;
  std::set<WorkerId> gone_;
  std::set<WorkerId> dismissed_;
};

}  // namespace elasticrun::simulate::faults
