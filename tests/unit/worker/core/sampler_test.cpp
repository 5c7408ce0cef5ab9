// The order of the samples: a bijection, different in each epoch, close enough to uniform, and
// always the same.
#include "worker/core/sampler.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using elasticrun::worker::core::Permutation;

namespace {

std::vector<std::uint64_t> all(std::uint64_t seed, std::int64_t epoch, std::uint64_t n) {
  const Permutation permutation(seed, epoch, n);
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < n; ++i) order.push_back(permutation[i]);
  return order;
}

bool is_bijection(std::vector<std::uint64_t> order) {
  std::ranges::sort(order);
  for (std::uint64_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

// Pearson's chi-squared statistic for equally likely cells.
double chi_square(const std::vector<int>& cells, double expected) {
  double sum = 0;
  for (const int cell : cells) sum += (cell - expected) * (cell - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("every sample comes once, whatever the size") {
  for (std::uint64_t n = 1; n <= 300; ++n) {
    CAPTURE(n);
    CHECK(is_bijection(all(7, 0, n)));
  }
  for (const std::uint64_t n : {4096U, 4097U, 60'000U, 65'536U}) {
    CAPTURE(n);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) CHECK(is_bijection(all(1, epoch, n)));
  }
}

TEST_CASE("a huge epoch can be sampled at any position") {
  const std::uint64_t n = (std::uint64_t{1} << 62) + 12'345;
  const Permutation permutation(3, 4, n);
  for (const std::uint64_t i : {std::uint64_t{0}, n / 2, n - 1}) CHECK(permutation[i] < n);
}

TEST_CASE("epochs and seeds have unrelated orders") {
  const std::vector<std::uint64_t> order = all(1, 0, 60'000);
  const auto agreements = [&](std::uint64_t seed, std::int64_t epoch) {
    const std::vector<std::uint64_t> other = all(seed, epoch, 60'000);
    int same = 0;
    for (std::size_t i = 0; i < order.size(); ++i) same += order[i] == other[i];
    return same;
  };
  CHECK(agreements(1, 0) == 60'000);
  // Two random orders agree in one position on average; in 12 or more only once in 10^9 tries.
  CHECK(agreements(1, 1) < 12);
  CHECK(agreements(2, 0) < 12);
  CHECK(agreements(0, 1) < 12);
  CHECK(order != all(0, 1, 60'000));
}

TEST_CASE("a sample is equally likely at every position") {
  // Over many epochs, counts the samples at position 3 of 10, and the pairs at positions 0 and 1.
  constexpr int epochs = 45'000;
  std::vector<int> one(10), two(100);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(42, epoch, 10);
    ++one[permutation[3]];
    ++two[permutation[0] * 10 + permutation[1]];
  }
  // 99.9 % quantiles for 9 and for 89 degrees of freedom (ten of the pairs are impossible).
  CHECK(chi_square(one, epochs / 10.0) < 27.9);
  std::vector<int> possible;
  for (std::size_t pair = 0; pair < two.size(); ++pair) {
    if (pair / 10 == pair % 10) CHECK(two[pair] == 0);
    if (pair / 10 != pair % 10) possible.push_back(two[pair]);
  }
  CHECK(chi_square(possible, epochs / 90.0) < 135.9);
}

TEST_CASE("a batch is drawn from the whole epoch") {
  // The first 6000 positions of 60000 samples, counted in 100 equal ranges of samples.
  for (const std::int64_t epoch : {0, 1, 2}) {
    const Permutation permutation(5, epoch, 60'000);
    std::vector<int> stretches(100);
    for (std::uint64_t i = 0; i < 6000; ++i) ++stretches[permutation[i] / 600];
    CAPTURE(epoch);
    CHECK(chi_square(stretches, 60.0) < 148.2);  // 99.9 % quantile for 99 degrees of freedom
  }
}

TEST_CASE("the order is fixed, because a resumed job must use the same one") {
  const Permutation permutation(2026, 3, 60'000);
  const std::vector<std::uint64_t> expected{27144, 13379, 24224, 36742, 4297, 2676};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(permutation[i] == expected[i]);
}
