// The plain walk of Or, Zhang, Freedman (MLSys 2020), as they published it, to compare others with.
//
// Every ten steps it looks at the sizes it has been at, in order, and at the gain of each pair of
// neighbours (the scaling condition of throughput.hpp). It grows by one size while all pairs pass.
// Else it shrinks to the next size below all it has seen, while one of the three smallest pairs
// fails and the minimum is not reached. Else it settles before the first pair that fails, once the
// larger of that pair has been measured over a hundred steps.
//
// Its averages never age, a pair is judged on ten steps however noisy they are, and once settled it
// looks no more: the faults that `throughput` mends. It has no use but as a yardstick.
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

  int settled_ = 0;         // the size; 0 while it walks
  std::vector<int> sizes_;  // it settled among these
};

}  // namespace elasticrun::autoscaler
