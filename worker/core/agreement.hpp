// Checks whether all members of a world hold the same 64-bit hash, by a few numbers in an
// all-reduce. That costs no more than an all-reduce of one number, and can ride on another one.
//
// Each member gives the digits of its hash and their squares. When n members give x_i, the sum of
// x_i is n x and the sum of their squares is n x^2 only if every x_i is x (otherwise their variance
// about x would not be 0). The sums must be exact in any order of the additions, for 2^17 members,
// the most there are: sums of 16-bit digits are exact in a double (53 bits), and those of 3-bit
// digits in a float (24 bits). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elasticrun::worker::core {

template <int bits>
class AgreementOf {
 public:
  static constexpr std::size_t digits = (64 + bits - 1) / bits;
  // The digits, then their squares.
  using Row = std::array<double, 2 * digits>;

  explicit AgreementOf(std::uint64_t hash) {
    constexpr std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    for (std::size_t i = 0; i < digits; ++i) {
      const auto digit = static_cast<double>(hash >> (bits * i) & mask);
      mine_[i] = digit;
      mine_[digits + i] = digit * digit;
    }
  }

  // What this member contributes to the sum.
  const Row& mine() const { return mine_; }
  // Whether all hashes are equal, given the sums of the rows of `members` members, this one among
  // them.
  bool holds(const Row& sums, int members) const {
    for (std::size_t i = 0; i < mine_.size(); ++i)
      if (sums[i] != mine_[i] * members) return false;
    return true;
  }

 private:
  Row mine_{};
};

using Agreement = AgreementOf<16>;
// For an all-reduce of floats.
using SmallAgreement = AgreementOf<3>;

}  // namespace elasticrun::worker::core
