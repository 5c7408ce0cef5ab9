// The policy for a user who knows the size: go to it and stay there.
//
// It assumes nothing about throughput and needs no samples. When the target is not available it
// takes the largest available size below it and grows again as soon as it can, so the loss of a
// host does not make it give up the target.
#pragma once

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Fixed final : public Policy {
 public:
  // `target` in workers; 0: as many as are available.
  explicit Fixed(int target) : target_(target) {}

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "fixed"; }

 private:
  int target_;
};

}  // namespace elasticrun::autoscaler
