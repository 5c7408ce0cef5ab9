// The order of the samples of one epoch: a permutation that can be evaluated at any place.
//
// After any change of the world every worker must know which sample stands at which place of the
// epoch, from two numbers that travel with the state: the seed and the epoch. A shuffled array
// would do for small data, but costs memory and time in every process in proportion to the data
// set, and a newcomer pays for all of it before its first step. Here place i is *computed*: a small
// Feistel network permutes the numbers below a power of two, and cycle walking (apply it again
// until the result is below n) makes that a permutation of [0, n). See Black and Rogaway, Ciphers
// with Arbitrary Finite Domains, CT-RSA 2002; for shuffling, Mitchell et al., Bandwidth-Optimal
// Random Shuffling for GPUs, ACM TOPC 2022.
//
// Only integers of fixed width are used: the order is the same on every platform and must stay the
// same for ever, since a resumed job goes on in it (sampler_test.cpp pins some values).
#pragma once

#include <array>
#include <cstdint>

namespace elasticrun::worker::core {

class Permutation {
 public:
  // A permutation of [0, n). Any change of seed or epoch gives an unrelated order.
  Permutation(std::uint64_t seed, std::int64_t epoch, std::uint64_t n);

  // The sample at place i < n of the epoch. O(1), some 20 to 60 ns: two walks or fewer on
  // average (more for n < 128, where it does not matter).
  std::uint64_t operator[](std::uint64_t i) const;

  std::uint64_t size() const { return n_; }

 private:
  // From four rounds on the order is statistically indistinguishable from a random one; two more
  // are cheap.
  static constexpr int rounds = 6;

  std::uint64_t encrypt(std::uint64_t x) const;

  std::uint64_t n_;
  int low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
  std::array<std::uint64_t, rounds> keys_;
};

}  // namespace elasticrun::worker::core
