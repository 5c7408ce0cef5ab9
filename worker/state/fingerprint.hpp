// Detects that a program has changed registered state where it must not: a fingerprint is taken
// before and after, and the arrays that differ are named.
//
// Such a change is made only on the members present, and a newcomer, or a member that begins again,
// does not get it: the members would train different models from then on, without any sign.
//
// A fingerprint hashes small arrays whole, and of a large array evenly spaced blocks, both ends
// included: a rewritten array is noticed, one changed row of a large table may not be. So taking a
// fingerprint stays below a millisecond for any state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class Fingerprint {
 public:
  // Takes the fingerprint of what is registered as state in a sealed table. Throws GroupBroken when
  // the GPU fails.
  explicit Fingerprint(const StateTable& table);

  // The names of the arrays of that same table that have changed since, such as "'weights', 'lr'";
  // empty: none.
  std::string changed_since(const StateTable& table) const;

 private:
  std::vector<std::uint64_t> hashes_;  // one for each array, in the order of registration
};

}  // namespace elasticrun::worker::state
