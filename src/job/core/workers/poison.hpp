// A step that kills every worker that computes it: a broken sample, a shape that no kernel takes, a
// division by zero at one learning rate.
//
// The step is repeated with other members, kills them as well, and within half a second no worker
// is left that holds the state: hours of training are gone for one picture. So after the first
// death the step is repeated with one member that computes nothing and keeps the state, and a job
// whose step has failed three times ends and names the step, its samples and the dead workers. Only
// deaths in a step by a worker's own doing count: an exit, or a signal of the program's own making,
// not a SIGKILL, not a lost host. Several deaths in one attempt count as one. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::job::workers {

class Poison {
 public:
  static constexpr int attempts_max = 3;

  Poison() = default;
  // A member of this world has died by itself; `who` names it and says how, for the user.
  void died(const std::string& who, Generation world);
  // The next world begins from this committed step.
  void world_formed(StepId step);
  // A step is committed, according to a message or the answer to an Abort. If it is beyond the one
  // from which the world began, that step does not kill after all; who has died in this world did
  // so in a later one.
  void committed(StepId step);
  // What is known about the samples of the step, for the user.
  void samples(std::string text) { samples_ = std::move(text); }

  // The next world needs a member that keeps the state.
  bool suspected() const { return attempts_ > 0; }
  bool certain() const { return attempts_ >= attempts_max; }
  // Why the job ends. Between two epochs on_epoch is called before the step, and may be what kills.
  std::string words(bool may_be_between_epochs) const;

 private:
  Poison(std::vector<std::string> dead, Generation world)
      : attempts_(dead.empty() ? 0 : 1), counted_(world), dead_(std::move(dead)) {}

  int attempts_ = 0;
  Generation counted_;          // the world of the last attempt
  std::optional<StepId> from_;  // the last committed step before the one that kills
  StepId last_;                 // the newest step that is known to be committed
  std::vector<std::string> dead_;
  std::size_t dead_before_ = 0;  // of these, the ones before the present world
  std::string samples_;
};

}  // namespace elasticrun::job::workers
