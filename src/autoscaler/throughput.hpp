// The scaling condition of Or, Zhang, Freedman (MLSys 2020), as a walk over the sizes to be had.
//
// For two sizes k0 < k1 with throughputs R0, R1 the gain
//     s = ((R1 - R0) / (k1 - k0)) / (R0 / k0)
// is what an added worker brings, as a share of what a present one brings: 1 is perfect scaling,
// 0 no gain. The walk grows by one size as long as the last step up paid (s > S), goes back when it
// did not, and, where nothing is known below, looks downwards as long as the step from there
// up does not pay either.
//
// It assumes diminishing returns: behind a step that does not pay no larger one pays. And it
// assumes that neighbouring sizes are far enough apart to be told apart through the noise. It needs
// no model and no price, which is why it is the first rule and not the last.
//
// Unlike its origin it judges a pair once and remembers the verdict, so noise cannot make it go to
// and fro: from any set of verdicts the walk has exactly one end. Verdicts end in two ways. A
// failed step is tried again after a time, doubled each time it fails again. A step that paid needs
// no second try from below; but when the throughput at the size the walk has settled at drifts
// away from what it was, everything is looked at anew.
#pragma once

#include <compare>
#include <map>
#include <optional>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Throughput final : public Policy {
 public:
  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "throughput"; }

 private:
  struct Pair {
    int low = 0;
    int high = 0;
    auto operator<=>(const Pair&) const = default;
  };
  struct Judged {
    bool pays = false;
    double gain = 0;
    double low_rate = 0;  // samples/s
    double high_rate = 0;
    Time at{};
    int times = 0;  // the same verdict in a row
  };
  enum class Verdict { unknown, close, pays, fails };
  struct View {
    const Snapshot& snapshot;
    const Limits& limits;
    Time now;
  };
  struct Walk {
    int target = 0;
    std::optional<Pair> because;  // the verdict that decided
    bool close = false;           // stay: that pair needs more steps
    bool retry = false;           // the target has failed before, long ago
  };

  const Measure* measured(const View& view, int size) const;
  Time expires(const Judged& judged, const Limits& limits) const;
  Verdict judge(const View& view, Pair pair);
  Walk walk(const View& view);
  void watch_drift(const Measure& here);
  Decision explain(const View& view, const Walk& walk, const Measure& here) const;
  std::string pair_text(Pair pair, const Limits& limits) const;
  std::string move_text(const View& view, const Walk& walk, const Measure& here) const;
  Time next_retry(const View& view) const;

  std::map<Pair, Judged> judged_;
  int settled_ = 0;                  // the size, 0 while looking
  std::optional<double> reference_;  // its samples/s, once known well
  int shares_ = 0;                   // Measure::shares it belongs to
  std::optional<int> away_since_;    // the round of this visit since which it has been off that
  // Measures older than this are from before a drift and say nothing any more.
  Time fresh_since_ = Time::min();
  // Why all verdicts were dropped, and where: part of the reason until the walk leaves or settles.
  std::string drift_;
  int drift_size_ = 0;
};

}  // namespace elasticrun::autoscaler
