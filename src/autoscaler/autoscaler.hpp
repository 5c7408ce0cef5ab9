// The autoscaler as the job sees it: it takes facts and returns a decision with the reason for it.
//
// It holds what every policy needs (measurements, limits, the batch rule) and enforces what every
// policy must obey: never two changes at once, a settling time between changes, only sizes that are
// available, no immediate retry of a size that could not be reached. So a policy is only its rule.
//
// It has no clock, thread or log: the caller passes the time in. The driver calls decide(now) once
// wake_at() has passed, and carries out the decision. Acting late or not at all does no harm: the
// next call returns the same decision.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/batch_plan.hpp"
#include "autoscaler/noise.hpp"
#include "autoscaler/objective.hpp"
#include "autoscaler/policy.hpp"
#include "autoscaler/samples.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::autoscaler {

struct Options {
  std::string policy = "throughput";
  int target = 0;  // for the policy `fixed`: its size; 0: as many workers as are available
  BatchRule batch;
  Aims aims;
  Limits limits;  // offers_changed() sets `sizes` later
};

class Autoscaler {
 public:
  // The names that Options::policy may have.
  static std::vector<std::string_view> policies();
  // An error when there is no such policy. "exec" includes its program: "exec:./policy.sh".
  static Result<void> check_policy(std::string_view policy);
  static Result<Autoscaler> make(Options options);

  // ---- facts
  // The sizes available now, in any order; sizes outside the limits are ignored. A size without a
  // price costs 1 per worker, so money is then worker hours. Offer::global_batch is filled in by
  // the autoscaler.
  void offers_changed(std::vector<Offer> offers, Time now);
  // The program has given its batch settings, which replace the previous rule.
  void batch_rule_changed(const BatchRule& rule) { rule_ = sound(rule); }
  void progress(std::optional<std::int64_t> samples_left);
  // A change costs that much time, in which nothing is computed: decisions to change are so far
  // apart that at most about a tenth of the time is lost.
  void change_costs(Duration cost);
  // A second call before change_ended() still counts as the same change.
  void change_started(Time now);
  // Call this after world_changed() if the change led to a new world. If the world did not reach
  // the size last decided on, that size is not tried again for a while.
  void change_ended(Time now);
  // A new world has begun to step: the first one, or one after a planned or forced change.
  void world_changed(Generation generation, int size, std::int64_t global_batch, Time now);
  // The new world has the same members as the one before but other shares, so a different
  // throughput there is not drift.
  void shares_changed() { window_.shares_changed(); }
  // Takes a worker's report; returns the round that it completed, if it completed one.
  std::optional<WorldSample> observe(const WorkerSample& sample, Time now);
  // Takes the answer to a question(), at any later time; an error says why it cannot be used.
  Result<void> advised(Result<Advice> answer);
  // Takes a whole round, from a simulator.
  void observe(const WorldSample& round, Time now);

  // ---- answers
  const Decision& decide(Time now);
  // What the policy needs answered from outside before it can decide; each question is returned
  // once.
  std::optional<Question> question() { return policy_->question(); }
  // The earliest time at which decide() may return something new; in the past if it may already.
  Time wake_at() const { return dirty_ ? at_once : decision_.again; }
  // The plan for a world of this size, with the policy's batch if the policy chooses one. Where the
  // rule names no base batch, the learning-rate factor is relative to the first world's batch.
  BatchPlan plan(int size, std::vector<double> weights) const;
  std::vector<Measure> curve() const { return window_.curve(); }
  // Money spent since the first world. While a change starts workers, the larger of the present
  // and the wanted size is charged.
  double spent(Time now) const;
  std::string_view policy() const { return policy_->name(); }

 private:
  struct Failed {
    int times = 0;
    Time until{};
  };

  Autoscaler(Options options, std::unique_ptr<Policy> policy);
  Duration pause_after(const Failed& failed) const;
  Decision consider(Time now);
  Decision veto(Decision wanted, Time now) const;
  Snapshot snapshot(Time now) const;
  BatchRule rule() const;
  std::int64_t chosen_batch(int size) const;
  void set_offers(std::vector<Offer> offers);
  void count_money(Time now);
  void hear(const std::optional<Noise>& noise);

  std::unique_ptr<Policy> policy_;
  BatchRule rule_;
  Limits limits_;
  Duration settle_;  // as the user gave it
  Window window_;
  std::vector<Offer> offers_;  // one per entry of limits_.sizes, in order
  std::optional<Noise> noise_;

  int size_ = 0;  // 0: no world yet
  std::int64_t global_batch_ = 0;
  std::int64_t first_batch_ = 0;
  std::optional<std::int64_t> samples_left_;
  std::optional<Time> began_;
  double spent_ = 0;  // money, up to counted_
  Time counted_{};
  Time quiet_since_{};  // end of the last change
  bool changing_ = false;
  int wanted_ = 0;  // the size decided on for the change under way; 0: we did not decide it
  std::int64_t wanted_batch_ = 0;
  std::int64_t batch_ = 0;        // largest global batch, as the policy chose it; 0: it chose none
  std::map<int, Failed> failed_;  // sizes that could not be reached

  bool dirty_ = true;  // a fact has arrived since the last decision
  Decision decision_;
};

}  // namespace elasticrun::autoscaler
