// Members whose state differs: noticed on a step's reduction, named by one gather, told to the
// controller, and mended where it is clear who is right.
//
// The ones that differ from more than half forget what they have, so that the re-form that follows
// gives them the others' state. Where no half agrees nobody knows which state is right, and the
// controller ends the job. Machines of different kinds are told of, and left alone: they differ in
// last bits without a mistake.
#pragma once

#include <optional>

#include "worker/agreement.hpp"
#include "worker/presence.hpp"
#include "worker/state_comparison.hpp"

namespace elasticrun::worker {

class Divergence {
 public:
  // Of a sealed table.
  explicit Divergence(Presence& presence);

  // Of what rides on the reduction of a step, as doubles or as floats; zeros where nothing is
  // compared.
  using Row = SmallAgreement::Row;
  Row look();
  // With the sums over the world; the same on all ranks, and collective where the state differs.
  // Throws GroupBroken when the world has to form anew.
  void check(Group& group, const Row& sums);

 private:
  void tell(Group& group);

  Presence& presence_;
  StateComparison comparison_;
  std::optional<std::uint64_t> hash_;  // of this step's look
};

}  // namespace elasticrun::worker
