// What a job makes of workers that fail: how many failures it takes, when a step is known to kill
// whoever computes it, and when all members have made the same mistake.
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

  // A worker has failed. True: once more than there may be.
  bool count(bool member);
  int in_a_row() const { return in_a_row_; }
  int restarts_max() const { return restarts_max_; }

  // A member has ended, however it was.
  void member_ended(CommonEnd::End end) { ends_.add(std::move(end)); }
  void member_left() { ++left_; }
  // It has died by its own hand, in a step of that world.
  void died_in_step(const std::string& who, Generation world) { poison_.died(who, world); }
  void samples(std::string text) { poison_.samples(std::move(text)); }
  // A world is there, and steps from then on; it has stepped for the first time.
  void world_formed(Step step);
  void world_stepped() { ends_.survived(); }
  // A step that nobody had committed before.
  void committed(Step step);

  // divergences.hpp
  std::optional<Divergences::Verdict> states_differ(const wire::Diverged& diverged,
                                                    const std::vector<std::string>& odd,
                                                    std::int64_t steps_a_look) {
    return divergences_.hear(diverged, odd, steps_a_look);
  }

  const Poison& poison() const { return poison_; }
  std::optional<CommonEnd::Mistake> mistake() const { return ends_.mistake(); }
  // Nobody has failed since the last world formed, but somebody left: a program with a loop of its
  // own ends so, one worker after the other.
  bool left_one_by_one() const { return left_ > 0 && failed_ == 0; }

 private:
  int restarts_max_;
  int in_a_row_ = 0;           // without a newly committed step
  int failed_members_ = 0;     // of the present world; one of them is in the count
  int failed_ = 0, left_ = 0;  // since the last world formed
  Poison poison_;
  CommonEnd ends_;  // of members, since a world has stepped
  Divergences divergences_;
};

}  // namespace elasticrun::job::workers
