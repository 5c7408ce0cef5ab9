// Members whose state differs: noticed in a step's reduction, found by one gather, reported to the
// controller, and repaired where it is clear who is right.
//
// The ones that differ from more than half forget what they have, so that the re-form that follows
// gives them the others' state. Where no half agrees nobody knows which state is right, and the
// controller ends the job. A difference between machines of different kinds is reported and left
// alone: their last bits differ without a mistake.
#pragma once

#include <optional>

#include "worker/control/world_session.hpp"
#include "worker/core/agreement.hpp"
#include "worker/state/state_comparison.hpp"

namespace elasticrun::worker::training {

class Divergence {
 public:
  // Of a sealed table.
  explicit Divergence(control::WorldSession& session);

  // What is added to the numbers of a step's reduction, exact as doubles and as floats; zeros where
  // nothing is compared.
  using Row = core::SmallAgreement::Row;
  Row look();
  // With the sums over the world; the same on all ranks, and collective where the state differs.
  // Throws GroupBroken when the world has to form anew.
  void check(collective::Group& group, const Row& sums);

 private:
  void tell(collective::Group& group);

  control::WorldSession& session_;
  state::StateComparison comparison_;
  std::optional<std::uint64_t> hash_;  // of this step's look
};

}  // namespace elasticrun::worker::training
