// How samples are split: exact sums, shares that differ by at most one, and weights by largest
// remainder.
#include "worker/core/shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.hpp"

using elasticrun::worker::core::offset;
using elasticrun::worker::core::pieces;
using elasticrun::worker::core::split;
using Shares = std::vector<std::int64_t>;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

std::int64_t sum(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("samples are split evenly, or by weight") {
  struct Case {
    const char* what;
    std::int64_t n;
    int size;
    std::vector<double> weights;
    Shares expected;
  };
  const Case cases[] = {
      {"one rank", 32, 1, {}, {32}},
      {"even", 128, 4, {}, {32, 32, 32, 32}},
      {"256 over 12", 256, 12, {}, {22, 22, 22, 22, 21, 21, 21, 21, 21, 21, 21, 21}},
      {"fewer samples than ranks", 2, 4, {}, {1, 1, 0, 0}},
      {"nothing", 0, 3, {}, {0, 0, 0}},
      {"equal weights are no weights", 10, 4, {2, 2, 2, 2}, {3, 3, 2, 2}},
      {"proportional", 100, 3, {1, 2, 1}, {25, 50, 25}},
      {"largest remainder", 10, 3, {3, 3, 1}, {4, 4, 2}},
      {"ties go to low ranks", 3, 2, {1, 1}, {2, 1}},
      {"a rank of weight 0 gets nothing", 9, 3, {1, 0, 1}, {5, 0, 4}},
      {"a very slow rank may get nothing", 8, 2, {1, 0.01}, {8, 0}},
      {"no rank is usable: equal", 9, 3, {0, -1, no_number}, {3, 3, 3}},
      {"what is no weight counts as 0", 8, 3, {infinite, 1, 1}, {0, 4, 4}},
      {"huge and tiny weights", 4, 2, {1e308, 1e-308}, {4, 0}},
      {"weights beyond the sum of doubles", 4, 2, {1.7e308, 1.7e308}, {2, 2}},
      {"the largest step",
       elasticrun::worker::core::max_global_batch,
       2,
       {1, 1},
       {std::int64_t{1} << 39, std::int64_t{1} << 39}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(split(c.n, c.size, c.weights) == c.expected);
  }
}

TEST_CASE("any split is exact and within one sample of its quota") {
  elasticrun::Rng rng(11);
  for (int k = 0; k < 2000; ++k) {
    const auto n = static_cast<std::int64_t>(rng.below(5000));
    std::vector<double> weights(1 + rng.below(40));
    for (double& weight : weights) weight = rng.chance(0.1) ? 0 : rng.uniform();
    weights[0] = 1;  // the largest; weights are rounded to a millionth of it
    const Shares shares = split(n, static_cast<int>(weights.size()), weights);
    CAPTURE(n);
    REQUIRE(sum(shares) == n);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const double quota = static_cast<double>(n) * weights[rank] / total;
      CHECK(shares[rank] >= 0);
      CHECK(std::abs(static_cast<double>(shares[rank]) - quota) < 1.05);
    }
  }
}

TEST_CASE("a share begins after those of lower ranks") {
  const Shares shares{22, 22, 0, 21};
  const std::int64_t expected[] = {0, 22, 44, 44, 65};
  for (int rank = 0; rank <= 4; ++rank) CHECK(offset(shares, rank) == expected[rank]);
}

TEST_CASE("a share is split into calls of compute") {
  struct Case {
    std::int64_t share, micro_batch;
    Shares expected;
  };
  const Case cases[] = {
      {0, 0, {}},        {0, 8, {}},         {32, 0, {32}},          {32, 32, {32}},
      {32, 100, {32}},   {32, 16, {16, 16}}, {33, 16, {11, 11, 11}}, {5, 2, {2, 2, 1}},
      {3, 1, {1, 1, 1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.share);
    CAPTURE(c.micro_batch);
    CHECK(pieces(c.share, c.micro_batch) == c.expected);
  }
}
