// Goes to the size that a fitted law of the step time says is best, and believes what it measures
// there.
//
// A walk learns about one neighbour at a time, and its verdicts compare two noisy neighbours whose
// difference is small. Most of what it finds out could be told beforehand: a step is compute, which
// is divided among the workers, and sync, which is not (time_model.hpp). So this policy predicts
// the worth (objective.hpp) of every size from the sizes it has seen, goes at once to the one that
// promises most, measures, and predicts again; it ends where nothing unseen promises 5 % more and
// nothing seen is better. Each size is tried once per search, so every search ends. Where the
// objective is about the global batch, too, a size with another batch is another thing to try.
//
// Where nothing like a size was seen, the laws that the measures bear differ: from the best one
// (Pollux's optimism) to the worst (nothing is gained). Optimism alone tries every size that is not
// disproved, which costs more than it finds; pessimism alone never moves. A promise here is what is
// gained on average when the truth lies anywhere between the two, and one returns if it is no gain.
// It never goes beyond double the largest size seen, however much is promised, nor to a batch that
// is not within a factor of two of one that was.
//
// It assumes that the law's shape holds, roughly; that is checked by measurement, so where it does
// not the search is longer, not wrong. Measures age: after max_age, doubled each time the search
// ends where it began, a throughput counts as a range that grows, until it promises enough to be
// measured again. When the throughput here drifts, all is forgotten.
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
  // The policies that differ in what they seek only.
  Fit(std::string_view name, std::unique_ptr<Objective> objective)
      : name_(name), objective_(std::move(objective)), limited_(!objective_->limit().empty()) {}

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return name_; }
  bool chooses_batch() const override { return objective_->chooses_batch(); }

 private:
  // What is tried: a size, and the global batch that it has there (0: nobody knows it).
  struct Setting {
    int size = 0;
    std::int64_t global_batch = 0;
    auto operator<=>(const Setting&) const = default;
  };
  static constexpr int least_rounds = 3;  // before it is judged
  // What is known of one: the present or last visit, joined with those before unless they
  // contradict.
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
    bool in_reach = true;  // it may be gone to at once
    double low = 0;        // samples/s; the same twice when measured
    double high = 0;
    double low_worth = 0;
    double high_worth = 0;
    double error = 0;  // of the worth, relative; of what is measured
    // What it may bring and cost beyond the best measured size, relative to that one, on average
    // over what is possible. 0 when measured.
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
  Decision settle(const View& view, const Promise& here, const Promise& next);
  Decision explore(const View& view, const Promise& here, const Promise& unseen) const;
  Decision go_back(const View& view, const Promise& here, const Promise& best) const;

  std::string_view name_;  // of the table of policies
  std::unique_ptr<Objective> objective_;
  bool limited_;

  std::map<Setting, Known> known_;
  Setting settled_;  // where it last came to rest, 0: nowhere yet; judged_ is of that place
  int times_ = 0;    // searches in a row that ended where the one before did
  bool searching_ = true;
  std::size_t batches_ = 0;         // that the largest size could have
  int judged_rounds_ = 0;           // of this visit, when it last settled
  std::vector<Setting> judged_by_;  // what there was to be judged then
  Decision judged_;
  std::optional<double> reference_;  // samples/s there, once known well
  int shares_ = 0;                   // Measure::shares it belongs to
  int away_ = 0;                     // the round since which it is off that; 0: it is not
  Time fresh_since_ = Time::min();
  std::string drift_;        // why the search began anew
  std::optional<bool> met_;  // the objective's limit, as last said
};

}  // namespace elasticrun::autoscaler
