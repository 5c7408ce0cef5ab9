// Permutation: the Feistel network and its keys.
//
// The halves may differ by one bit, so the numbers permuted are those below the next power of two
// above n and not the next power of four: at most half of them are walked over, not three quarters.
#include "worker/core/sampler.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/rng.hpp"

namespace elasticrun::worker::core {
namespace {

// With five bits or fewer the places of two samples are visibly dependent, however many keys are
// tried (a chi-square test shows it in half a million epochs); two bits more are left as a margin.
constexpr int least_bits = 8;

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::int64_t epoch, std::uint64_t n) : n_(n) {
  ER_CHECK(n <= mask(63), "more samples than an int64 counts");
  const int bits = std::max(least_bits, static_cast<int>(std::bit_width(n == 0 ? 0 : n - 1)));
  low_bits_ = bits / 2;
  low_mask_ = mask(low_bits_);
  high_mask_ = mask(bits - low_bits_);
  // The seed is mixed before the epoch joins it: (seed, epoch + 1) is not (seed + 1, epoch).
  Rng rng(mix(seed) + static_cast<std::uint64_t>(epoch));
  for (std::uint64_t& key : keys_) key = mix(rng.next());
}

std::uint64_t Permutation::encrypt(std::uint64_t x) const {
  std::uint64_t low = x & low_mask_;
  std::uint64_t high = x >> low_bits_;
  for (int round = 0; round < rounds; round += 2) {
    low ^= mix(high + keys_[static_cast<std::size_t>(round)]) & low_mask_;
    high ^= mix(low + keys_[static_cast<std::size_t>(round) + 1]) & high_mask_;
  }
  return high << low_bits_ | low;
}

std::uint64_t Permutation::operator[](std::uint64_t i) const {
  ER_CHECK(i < n_, "a place outside the epoch");
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

}  // namespace elasticrun::worker::core
