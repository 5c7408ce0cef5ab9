// A step that kills whoever computes it: a broken sample, a shape that no kernel takes, a division
// by zero at one learning rate.
//
// The step is repeated with other members, kills them as well, and within half a second nobody is
// left who holds the state: hours of training gone for one picture. So after the first death the
// step is repeated with one member that computes nothing and keeps the state, and a job whose step
// has failed three times ends, with the step, its samples and the dead named. Only deaths by their
// own hand count, in a step: a signal of the program's own making or an exit, not a kill, not a
// host that is lost. Several in one attempt are one. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::job::workers {

class Poison {
 public:
  static constexpr int attempts_max = 3;

  // A member of this world has died by itself; `who` and how, for a person.
  void died(const std::string& who, Generation world);
  // The next world begins from this committed step.
  void world_formed(Step step);
  // A step is committed, as a report or the answer to an Abort says: one beyond that settles it.
  void committed(Step step);
  // What is known of the samples of the step.
  void samples(std::string text) { samples_ = std::move(text); }

  // The next world needs a member that keeps the state.
  bool suspected() const { return attempts_ > 0; }
  bool certain() const { return attempts_ >= attempts_max; }
  // Why the job ends. Between two epochs, on_epoch is called before the step.
  std::string words(bool between_epochs) const;

 private:
  int attempts_ = 0;
  Generation counted_;  // the world of the last attempt
  std::optional<Step> from_;
  Step last_;  // that is known to be committed
  std::vector<std::string> dead_;
  std::string samples_;
};

}  // namespace elasticrun::job::workers
