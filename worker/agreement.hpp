// Whether all members of a world mean the same: one all-reduce of a few doubles, as small as one of
// a single number.
//
// Each member gives the digits of a 64-bit hash and their squares. When n members give x_i, the sum
// of x_i is n x and the sum of their squares is n x^2 only if every x_i is x (else their variance
// about x would not be 0). Digits of 16 bits keep the sums exact in a double, 53 bits, whatever the
// order of the additions: 2^17 members, the most there are, times 2^32. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elasticrun::worker {

class Agreement {
 public:
  static constexpr std::size_t digits = 4;
  // The digits, then their squares.
  using Row = std::array<double, 2 * digits>;

  explicit Agreement(std::uint64_t hash) {
    for (std::size_t i = 0; i < digits; ++i) {
      const auto digit = static_cast<double>(hash >> (16 * i) & 0xffff);
      mine_[i] = digit;
      mine_[digits + i] = digit * digit;
    }
  }

  // What this member gives to the sum.
  const Row& mine() const { return mine_; }
  // `sums` of the rows of so many members, this one among them.
  bool holds(const Row& sums, int members) const {
    for (std::size_t i = 0; i < mine_.size(); ++i)
      if (sums[i] != mine_[i] * members) return false;
    return true;
  }

 private:
  Row mine_{};
};

}  // namespace elasticrun::worker
