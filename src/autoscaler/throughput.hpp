// The scaling condition of Or, Zhang, Freedman (MLSys 2020), as a walk over the available sizes.
//
// For two sizes k0 < k1 with throughputs R0, R1 the gain
//     s = ((R1 - R0) / (k1 - k0)) / (R0 / k0)
// is what an added worker brings, as a fraction of what a present one brings: 1 is perfect scaling,
// 0 is no gain. The walk grows by one size as long as the last step up paid (s > S) and goes back
// when it did not. Where nothing is known of the sizes below, it goes down as long as the step up
// from there does not pay either.
//
// It assumes diminishing returns: beyond a step that does not pay, no larger one pays. And it
// assumes that neighbouring sizes differ enough to be distinguished despite the noise. It needs no
// model and no price, which is why it is the simplest policy and not the best one.
//
// Unlike the original it judges a pair once and remembers the verdict, so noise cannot make it go
// to and fro: from any set of verdicts the walk has exactly one end. Verdicts end in two ways. A
// failed step is tried again after a time, which doubles each time it fails again. A step that paid
// needs no second try from below; but when the throughput at the size the walk has settled at
// drifts away from what it was, all verdicts are dropped.
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
    int times = 0;  // how often in a row the verdict was the same
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
    bool close = false;           // stay: the pair `because` needs more steps
    bool retry = false;           // the target failed before, and that verdict has expired
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
  int settled_ = 0;                  // the size settled at; 0 while searching
  std::optional<double> reference_;  // samples/s at settled_, once known well
  int shares_ = 0;                   // the Measure::shares that reference_ belongs to
  std::optional<int> away_since_;    // the round of this visit since which it is off reference_
  // Measures older than this are from before a drift and are not used.
  Time fresh_since_ = Time::min();
  // Why all verdicts were dropped, and at which size: a part of the reason until the walk leaves
  // that size or settles.
  std::string drift_;
  int drift_size_ = 0;
};

}  // namespace elasticrun::autoscaler
