// Which size a job should have, and how the samples of a step are shared out: the autoscaler, the
// speeds of single workers, and the work that is left.
//
// The workers' throughput is measured here and nowhere else.
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
  // The number of workers wanted from now on: as the user said, or as many as the hosts have room
  // for.
  void set_target(int target) { target_ = target; }
  void offers_changed(std::vector<autoscaler::Offer> offers, Time now) {
    scaler_.offers_changed(std::move(offers), now);
  }
  // A worker is ready to train.
  void ready(const JobSpec& spec, const wire::TrainSpec& train);
  void world_formed(const rendezvous::WorldFormed& formed, std::vector<autoscaler::Member> members,
                    Time now);
  void restored(const wire::saved::Manifest& save) { work_.restored(save); }
  void committed(StepId step) { work_.committed(step); }
  // True: the samples of all members are in, so the answers below may be different now.
  bool sample(const JobSpec& spec, WorkerId worker, const wire::Sample& sample, Time now,
              Actions& out);
  // All workers of a plain program were started, and make progress. `cost`: what such a restart
  // costs; it keeps policies from restarting all the time.
  void run_begins(int size, Duration cost, Time now);
  void progress(const wire::agent::Progress& made, Time now, Actions& out);
  void advised(const JobSpec& spec, const Result<std::string>& output, Actions& out);
  // Whether processes are starting or groups forming: step times are then not representative.
  void unsettled(bool now_it_is, Time now);

  // ---- answers
  int target() const { return target_; }
  // Why the size, or the batch, should change now; nothing: both stay.
  std::optional<std::string> decide(const JobSpec& spec, Time now, Actions& out);
  std::vector<autoscaler::Straggler> stragglers(Time now) { return stragglers_.confirmed(now); }
  // For a world of these members. With `keeper` one of them computes nothing and keeps the state.
  BatchPlan plan(const std::vector<wire::Member>& members,
                 const std::vector<autoscaler::Member>& typed, bool keeper) const;
  // Why the `size` members of the present world should have another plan; nothing: they should not.
  // `replaces`: stragglers are replaced, so shares stay while one is being confirmed.
  std::optional<std::string> better_plan(int size, bool keeper, bool replaces,
                                         const std::string& why, Time now);
  bool may_be_between_epochs() const { return work_.may_be_between_epochs(); }
  bool counts_samples() const { return work_.counts_samples(); }
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
  Generation run_;                 // of a plain program
  StepId run_step_{0};             // in it
  int target_ = 0;                 // number of workers wanted; 0: not known yet
  std::int64_t target_batch_ = 0;  // global batch chosen with it; 0: the policy chose none
  std::int32_t keeper_ = -1;       // rank in the present world that computes nothing; -1: none
  bool unsettled_ = false;         // as last passed to the autoscaler
  std::string last_reason_;        // of the autoscaler's newest decision
  std::pair<int, std::string> last_decision_;  // its target, and its reason without digits
  std::set<std::string> bad_advice_;           // kinds of bad advice that were logged
  std::optional<bool> forecast_met_;           // as last logged
};

}  // namespace elasticrun::job::course
