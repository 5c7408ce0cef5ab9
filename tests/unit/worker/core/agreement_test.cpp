// The agreement of all members of a world, in worlds of every size.
#include "worker/core/agreement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/rng.hpp"

namespace elasticrun::worker::core {
namespace {

constexpr std::size_t most = 131'072;  // the most members of a world

// As the reduction computes it, adding one member's row after the other.
Agreement::Row sum_of(const std::vector<std::uint64_t>& hashes) {
  Agreement::Row sums{};
  for (const std::uint64_t hash : hashes) {
    const Agreement member(hash);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += member.mine()[i];
  }
  return sums;
}

bool agree(const std::vector<std::uint64_t>& hashes) {
  const auto sums = sum_of(hashes);
  const bool first = Agreement(hashes.front()).holds(sums, static_cast<int>(hashes.size()));
  const bool last = Agreement(hashes.back()).holds(sums, static_cast<int>(hashes.size()));
  CHECK(first == last);
  return first;
}

TEST_CASE("members with equal hashes agree, even in the largest world") {
  for (const std::size_t members :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{1000}, most})
    for (const std::uint64_t hash : {std::uint64_t{0}, ~std::uint64_t{0}, mix(1), mix(2)})
      CHECK(agree(std::vector(members, hash)));
}

TEST_CASE("one different bit of one member is noticed, wherever it is") {
  for (const std::size_t members : {std::size_t{2}, std::size_t{1000}})
    for (int bit = 0; bit < 64; ++bit) {
      CAPTURE(bit);
      std::vector<std::uint64_t> hashes(members, mix(7));
      hashes[members / 2] ^= std::uint64_t{1} << bit;
      CHECK_FALSE(agree(hashes));
    }
  std::vector<std::uint64_t> hashes(most, ~std::uint64_t{0});
  hashes[1] -= 1;
  CHECK_FALSE(agree(hashes));
}

TEST_CASE("differences that cancel each other out are noticed") {
  CHECK_FALSE(agree({5, 4, 6}));
  CHECK_FALSE(agree({4, 6, 5}));
  CHECK_FALSE(agree({0, 0x1'0000'0000, 0xffff, 0x1'0000'ffff}));
}

// Sums of floats must be exact even in the largest world, whether added one by one or as a tree.
TEST_CASE("float sums are exact, and show a difference") {
  // `most`: no member differs
  for (const std::size_t odd : {std::size_t{0}, most / 2, most - 1, most}) {
    CAPTURE(odd);
    std::array<float, SmallAgreement::Row().size()> sums{};
    for (std::size_t member = 0; member < most; ++member) {
      const SmallAgreement agreement(mix(5) ^ (member == odd ? 1ULL << 63 : 0));
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += static_cast<float>(agreement.mine()[i]);
    }
    SmallAgreement::Row row{};
    std::copy(sums.begin(), sums.end(), row.begin());
    CHECK(SmallAgreement(mix(5)).holds(row, static_cast<int>(most)) == (odd == most));
  }
  // All ones give the largest possible sums.
  std::array<float, SmallAgreement::Row().size()> sums{};
  const SmallAgreement ones(~0ULL);
  for (std::size_t member = 0; member < most; ++member)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(ones.mine()[i]);
  SmallAgreement::Row row{};
  std::copy(sums.begin(), sums.end(), row.begin());
  CHECK(ones.holds(row, static_cast<int>(most)));
}

}  // namespace
}  // namespace elasticrun::worker::core
