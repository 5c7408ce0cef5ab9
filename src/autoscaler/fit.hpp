// The policy that goes to the size which a fitted law of the step time says is best, and then
// trusts what it measures there.
//
// A walk learns about one neighbouring size at a time, and its verdicts compare two noisy
// neighbours whose difference is small. Most of what it finds out could be predicted: a step is
// compute, which is divided among the workers, and sync, which is not (time_model.hpp). So this
// policy predicts the worth (objective.hpp) of every size from the sizes it has seen, goes at once
// to the one that promises most, measures, and predicts again. It stops where no unseen size
// promises 5 % more and no seen size is better. Each size is tried once per search, so every search
// ends. Where the objective also chooses the global batch, each batch of a size is tried apart.
//
// Where nothing like a size was seen, several laws fit the measures, from the best one (Pollux's
// optimism) to the worst (nothing is gained). Optimism alone tries every size that is not ruled
// out, which costs more than it finds; pessimism alone never moves. Here the gain of a size is the
// average over that range, with a return to the best measured size where the move turns out to be
// no gain. The policy never goes beyond double the largest size seen (but may always take the next
// one), nor to a batch that is not within a factor of two of one seen, whatever is promised.
//
// It assumes that the law's shape roughly holds. Measurements check that, so where it does not hold
// the search takes longer but is not wrong. Measures age: after max_age (doubled each time the
// search ends where it began) a throughput counts as a growing range, until it promises enough to
// be measured again. When the throughput at the present size drifts, all measures are forgotten.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autoscaler/forecast.hpp"
#include "autoscaler/objective.hpp"
#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Fit final : public Policy {
 public:
  // Several policies are this one, with different names and objectives.
  Fit(std::string_view name, std::unique_ptr<Objective> objective)
      : name_(name), objective_(std::move(objective)), limited_(!objective_->limit().empty()) {}

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return name_; }
  bool chooses_batch() const override { return objective_->chooses_batch(); }

 private:
  // What is tried: a size and its global batch (0: unknown).
  struct Setting {
    int size = 0;
    std::int64_t global_batch = 0;
    auto operator<=>(const Setting&) const = default;
  };
  static constexpr int least_rounds = 3;  // rounds measured before a setting is judged
  // What is known of a setting: its present or last visit, joined with earlier visits unless they
  // contradict it.
  struct Known {
    Measure visit;
    std::optional<Measure> before;
    Measure joined;
  };
  struct View {
    const Snapshot& snapshot;
    const Limits& limits;
    Time now;
    Setting here() const { return {snapshot.size, snapshot.global_batch}; }
    Offer offer(const Setting& setting) const;
  };
  struct Promise {
    Setting setting;
    bool measured = false;
    bool in_reach = true;  // the policy may move there directly
    double low = 0;        // samples/s; low and high are equal when measured
    double high = 0;
    double low_worth = 0;
    double high_worth = 0;
    double error = 0;  // relative error of the worth, where there is a measure
    // What it may gain and lose against the best measured worth, as a part of that, averaged over
    // the range from low_worth to high_worth. 0 when measured.
    double gain = 0;
    double loss = 0;
  };

  static Setting setting_of(const Measure& m) { return {m.size, m.global_batch}; }
  std::string name(const Setting& setting) const;
  std::string workers(const Setting& setting) const;
  std::string bring(const Setting& setting) const;
  Decision going(const View& view, const Setting& to, std::string reason) const;
  bool can_be(const View& view, const Setting& setting) const;
  void remember(const View& view);
  bool usable(const Known& known) const;
  double doubt(const Measure& measure, const View& view) const;
  Promise between(const View& view, const Setting& setting, double low, double high) const;
  std::vector<Promise> promises(const View& view) const;
  bool too_close(const View& view, const Promise& best, const Promise& here) const;
  double wanted_difference(const View& view, const Promise& best, const Promise& here) const;
  double horizon(const View& view) const;
  bool pays_back(const View& view, const Promise& unseen) const;
  const Promise* blind_try(const std::vector<Promise>& all, const Promise& here) const;
  bool pays_for(const View& view, const Promise& smaller) const;
  std::vector<Setting> grounds(const View& view) const;
  bool drifted(const View& view, const Measure& here);
  std::optional<Forecast> forecast(const View& view, const std::vector<Promise>& all) const;
  Decision told(const View& view, const std::vector<Promise>& all, Decision made);
  static Decision measuring(const View& view);
  Decision judge(const View& view, const std::vector<Promise>& all, const Measure& measure);
  // `why_not`: why `next` is not taken although it seems better.
  Decision settle(const View& view, const Promise& here, const Promise& next, const char* why_not);
  Decision explore(const View& view, const Promise& here, const Promise& unseen) const;
  Decision go_back(const View& view, const Promise& here, const Promise& best) const;

  std::string_view name_;  // as in the table of policies
  std::unique_ptr<Objective> objective_;
  bool limited_;  // the objective has a limit

  std::map<Setting, Known> known_;
  Setting settled_;  // where it last settled, size 0: nowhere yet; judged_ is about that setting
  int times_ = 0;    // searches in a row that ended at settled_
  bool searching_ = true;
  std::size_t batches_ = 0;         // number of batches offered for the largest size
  int judged_rounds_ = 0;           // rounds of this visit when it last settled
  std::vector<Setting> judged_by_;  // grounds() at that time
  Decision judged_;
  std::optional<double> reference_;  // samples/s at settled_, once known well
  int shares_ = 0;                   // the Measure::shares that reference_ belongs to
  int away_ = 0;                     // the round since which it is off reference_; 0: it is not
  Time fresh_since_ = Time::min();   // older measures are not used
  std::string drift_;                // why the search began again; part of the reason
  std::optional<bool> met_;          // Forecast::met as last reported
};

}  // namespace elasticrun::autoscaler
