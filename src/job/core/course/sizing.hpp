// Which size a job should have, and how the samples of a step are shared out: the autoscaler, the
// speeds of single workers, and what is left to do.
//
// Samples come in here and nowhere else.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "autoscaler/shares.hpp"
#include "autoscaler/stragglers.hpp"
#include "job/core/course/uncounted.hpp"
#include "job/core/course/work.hpp"
#include "job/core/terms/events.hpp"
#include "job/spec.hpp"
#include "rendezvous/membership.hpp"

namespace elasticrun::job::course {

class Sizing {
 public:
  static Result<Sizing> make(const JobSpec& spec);

  // ---- facts
  // Workers that are wanted from now on: a person's word, or what the hosts have room for.
  void set_target(int target) { target_ = target; }
  void offers_changed(std::vector<autoscaler::Offer> offers, Time now) {
    scaler_.offers_changed(std::move(offers), now);
  }
  // A worker is in train.
  void ready(const JobSpec& spec, const wire::TrainSpec& train);
  void world_formed(const rendezvous::WorldFormed& formed, std::vector<autoscaler::Member> members,
                    Time now);
  void committed(Step step) { work_.committed(step); }
  // True: all members have reported, so that the answers may be others now.
  bool sample(const JobSpec& spec, WorkerId worker, const wire::Sample& sample, Time now,
              Actions& out);
  void advised(const JobSpec& spec, const Result<std::string>& output, Actions& out);
  // Processes start or groups form: steps are not what they would be.
  void unsettled(bool now_it_is, Time now);

  // ---- answers
  int target() const { return target_; }
  // The size, or the batch, should change, and why; nothing: it stays.
  std::optional<std::string> decide(const JobSpec& spec, Time now, Actions& out);
  std::vector<autoscaler::Straggler> stragglers(Time now) { return stragglers_.confirmed(now); }
  // For a world of these members, one of which computes nothing and keeps the state if `keeper`.
  wire::BatchPlan plan(const std::vector<wire::Member>& members,
                       const std::vector<autoscaler::Member>& typed, bool keeper) const;
  // Why the members of the present world, so many, should have another plan. `replaces`: one of
  // them may turn out to be slow, and be replaced.
  std::optional<std::string> better_plan(int size, bool keeper, bool replaces,
                                         const std::string& why, Time now);
  bool between_epochs() const { return work_.between_epochs(); }
  // A program with a loop of its own does not say how much is left.
  bool knows_what_is_left() const { return work_.left().has_value(); }
  bool settled() const { return !unsettled_; }
  const std::string& last_reason() const { return last_reason_; }

  Time wake_at() const { return scaler_.wake_at(); }
  Time stragglers_wake_at() const { return stragglers_.wake_at(); }

 private:
  explicit Sizing(const JobSpec& spec, autoscaler::Autoscaler scaler);

  autoscaler::Autoscaler scaler_;
  autoscaler::Shares shares_;
  autoscaler::Stragglers stragglers_;
  Work work_;
  Uncounted uncounted_;
  int target_ = 0;                    // workers wanted
  std::int64_t target_batch_ = 0;     // with it, where the policy says so
  std::int32_t keeper_ = -1;          // rank in the present world that computes nothing
  bool unsettled_ = false;            // as the autoscaler was last told
  std::string last_reason_;           // of the autoscaler, said once
  std::set<std::string> bad_advice_;  // kinds of it that were told
  std::optional<bool> forecast_met_;  // as a person was last told
};

}  // namespace elasticrun::job::course
