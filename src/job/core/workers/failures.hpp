// What a job concludes from workers that fail: whether there were too many failures, whether a step
// kills the workers that compute it, and whether all members have made the same mistake.
#pragma once

#include <optional>
#include <string>

#include "base/ids.hpp"
#include "job/core/workers/common_end.hpp"
#include "job/core/workers/divergences.hpp"
#include "job/core/workers/poison.hpp"

namespace elasticrun::job::workers {

class Failures {
 public:
  explicit Failures(int restarts_max) : restarts_max_(restarts_max) {}

  // A worker has failed. True: this is one failure more than there may be.
  bool count(bool member);
  int in_a_row() const { return in_a_row_; }
  int restarts_max() const { return restarts_max_; }

  // A member has ended, in whatever way.
  void member_ended(CommonEnd::End end) { ends_.add(std::move(end)); }
  void member_left() { ++left_; }
  // A member has died by its own doing, in a step of that world; `who` names it and says how.
  void died_in_step(const std::string& who, Generation world) { poison_.died(who, world); }
  void samples(std::string text) { poison_.samples(std::move(text)); }
  // A world has formed, and goes on from that step; world_stepped: it has made its first step.
  void world_formed(StepId step);
  void world_stepped() { ends_.survived(); }
  // A step is committed that was not known to be committed before.
  void committed(StepId step);

  // See divergences.hpp.
  std::optional<Divergences::Verdict> states_differ(const wire::Diverged& diverged,
                                                    const std::vector<std::string>& odd,
                                                    std::int64_t steps_a_look) {
    return divergences_.hear(diverged, odd, steps_a_look);
  }

  const Poison& poison() const { return poison_; }
  std::optional<CommonEnd::Mistake> mistake() const { return ends_.mistake(); }
  // Since the last world formed no worker has failed, but some have left: this is how a program
  // with its own loop ends, one worker after the other.
  bool left_one_by_one() const { return left_ > 0 && failed_ == 0; }

 private:
  int restarts_max_;
  int in_a_row_ = 0;           // failures without a newly committed step between
  int failed_members_ = 0;     // of the present world; all of them count as one failure
  int failed_ = 0, left_ = 0;  // since the last world formed
  Poison poison_;
  CommonEnd ends_;  // of members, since a world last made its first step
  Divergences divergences_;
};

}  // namespace elasticrun::job::workers
