// The autoscaler as the job sees it: facts in, a decision with its reason out.
//
// It holds what every policy needs (measurements, limits, the batch rule) and keeps what every
// policy must obey: never two changes at once, a settling time between two, only sizes that can be
// had, no second try at once of a size that could not be reached. So a policy is only its rule.
//
// No clock, thread or log: time comes in, decisions go out. The driver calls decide(now) when
// wake_at() has passed, and acts on what it says; acting late or not at all does no harm, the
// same decision is given again.
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
  int target = 0;  // of the policy `fixed`; 0: as many as can be had
  BatchRule batch;
  Aims aims;
  Limits limits;  // `sizes` are given later, by offers_changed
};

class Autoscaler {
 public:
  // The names that Options::policy may have.
  static std::vector<std::string_view> policies();
  // An error when there is no such policy; "exec" is written with its program: "exec:./policy.sh".
  static Result<void> check_policy(std::string_view policy);
  static Result<Autoscaler> make(Options options);

  // ---- facts
  // Sizes that can be had now, in any order; those outside the limits are left out. One without a
  // price costs 1 per worker: money is then worker hours. The global batch is filled in here.
  void offers_changed(std::vector<Offer> offers, Time now);
  // What the program said about its batch. Values given here replace the former rule.
  void batch_rule_changed(const BatchRule& rule) { rule_ = sound(rule); }
  void progress(std::optional<std::int64_t> samples_left);
  // Again, before the first has ended, is still one change.
  void change_started(Time now);
  // After world_changed when it came to that. Without, the size last decided on is not tried
  // again for a while.
  void change_ended(Time now);
  // A world steps: the first one, a planned or a forced one.
  void world_changed(Generation generation, int size, std::int64_t global_batch, Time now);
  // That world has the members of the one before, with other shares: another throughput there is no
  // drift.
  void shares_changed() { window_.shares_changed(); }
  // The round it completed, if it did.
  std::optional<WorldSample> observe(const WorkerSample& sample, Time now);
  // The answer to a question(), whenever it comes; an error when it is no use, with the reason.
  Result<void> advised(Result<Advice> answer);
  // A whole round, from a simulator.
  void observe(const WorldSample& round, Time now);

  // ---- answers
  const Decision& decide(Time now);
  // What decide() would have answered from outside; told once.
  std::optional<Question> question() { return policy_->question(); }
  // The first moment at which decide() may say something new; in the past when it may already.
  Time wake_at() const { return dirty_ ? at_once : decision_.again; }
  // For a world of this size, with the batch that the policy has chosen, if it does; the factor of
  // the learning rate is against the first world's batch where the rule names no base.
  BatchPlan plan(int size, std::vector<double> weights) const;
  std::vector<Measure> curve() const { return window_.curve(); }
  // Money, since the first world: its size's price, and that of the size it is about to have while
  // those workers start.
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
  Window window_;
  std::vector<Offer> offers_;  // of limits_.sizes
  std::optional<Noise> noise_;

  int size_ = 0;  // 0: no world yet
  std::int64_t global_batch_ = 0;
  std::int64_t first_batch_ = 0;
  std::optional<std::int64_t> samples_left_;
  std::optional<Time> began_;
  double spent_ = 0;  // up to
  Time counted_{};
  Time quiet_since_{};  // end of the last change
  bool changing_ = false;
  int wanted_ = 0;  // what the change under way is for, as far as we decided it
  std::int64_t wanted_batch_ = 0;
  std::int64_t batch_ = 0;        // the largest that the policy has chosen; 0: it has not
  std::map<int, Failed> failed_;  // sizes that could not be reached

  bool dirty_ = true;
  Decision decision_;
};

}  // namespace elasticrun::autoscaler
