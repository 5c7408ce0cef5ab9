// Notices that a program has changed registered state where it must not: a look before, a look
// after, and the names of what differs.
//
// Such a change is made on the members that are there, and a newcomer, or a member that begins
// again, does not see it: the members would train different models from then on, without a sign.
//
// A look hashes small arrays whole, and of a large one evenly spaced blocks, its ends among them:
// what rewrites an array is seen, one changed row of a large table may not be. That keeps a look
// below a millisecond for any state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/state/state.hpp"

namespace elasticrun::worker::state {

class Fingerprint {
 public:
  // Of what is registered as state in a sealed table. Throws GroupBroken when the GPU fails.
  explicit Fingerprint(const StateTable& table);

  // "'weights', 'lr'": the arrays that differ; empty: none. Of the same table.
  std::string differing(const Fingerprint& other, const StateTable& table) const;

 private:
  std::vector<std::uint64_t> hashes_;  // of each array, as registered
};

}  // namespace elasticrun::worker::state
