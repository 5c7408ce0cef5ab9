// The plain walk of Or, Zhang, Freedman (MLSys 2020), as they published it; a baseline to compare
// other policies with.
//
// After every ten steps it looks at the sizes it has visited, in order, and at the gain of each
// pair of neighbours (the scaling condition of throughput.hpp). While all pairs pass, it grows by
// one size. Otherwise, while one of the three smallest pairs fails and the minimum is not reached,
// it shrinks to the next size below all it has visited. Otherwise it settles at the smaller size of
// the first pair that fails, once the larger one has been measured over a hundred steps.
//
// Its averages never age, a pair is judged on ten steps however noisy they are, and once settled it
// never looks again: `throughput` corrects these faults. This policy is useful only as a baseline.
#pragma once

#include <vector>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class ThroughputWalk final : public Policy {
 public:
  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "throughput-walk"; }

 private:
  struct Next {
    int target = 0;
    std::string reason;
    bool settled = false;
  };
  Next next(const Snapshot& snapshot, const Limits& limits) const;

  int settled_ = 0;         // the size settled at; 0 while it walks
  std::vector<int> sizes_;  // Limits::sizes when it settled
};

}  // namespace elasticrun::autoscaler
