// Members whose state differs: detected in a step's reduction, found by one gather, reported to the
// controller, and repaired when it is clear which state is right.
//
// Members that differ from the majority forget their state, so that the re-form that follows gives
// them the others' state. When no majority agrees it is unknown which state is right, and the
// controller ends the job. A difference between machines of different kinds is only reported: their
// last bits differ without a mistake.
#pragma once

#include <optional>

#include "worker/control/world_session.hpp"
#include "worker/core/agreement.hpp"
#include "worker/state/state_comparison.hpp"

namespace elasticrun::worker::training {

class Divergence {
 public:
  // The session's table is sealed.
  explicit Divergence(control::WorldSession& session);

  // The numbers to add to a step's reduction, exact as doubles and as floats; zeros when nothing is
  // compared.
  using Row = core::SmallAgreement::Row;
  Row look();
  // Checks the sums of the rows over the world, which are the same on all ranks. Collective when
  // the state differs. Throws GroupBroken when the world must re-form.
  void check(collective::Group& group, const Row& sums);

 private:
  void tell(collective::Group& group);

  control::WorldSession& session_;
  state::StateComparison comparison_;
  std::optional<std::uint64_t> hash_;  // this step's hash; nullopt: nothing is compared
};

}  // namespace elasticrun::worker::training
