// The policy of somebody who knows the size: go there, stay there.
//
// Assumes nothing about throughput and needs no samples. With a target that cannot be had now it
// takes the largest size below it and goes on when more can be had, so a lost host does not end the
// wish for it.
#pragma once

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Fixed final : public Policy {
 public:
  // 0: as many as can be had.
  explicit Fixed(int target) : target_(target) {}

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "fixed"; }

 private:
  int target_;
};

}  // namespace elasticrun::autoscaler
