// How a step's samples are split: over the ranks of a world, and over the calls of compute.
//
// Every rank computes the whole split from the plan it received, and all must come to the same
// split, or a sample is used twice. So the arithmetic is on integers: weights are rounded once, to
// a millionth of the largest, and after that no rounding depends on a compiler or a processor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace elasticrun::worker::core {

// The largest number of samples in a step: products with a weight stay within 64 bits.
inline constexpr std::int64_t max_global_batch = std::int64_t{1} << 40;

// Splits n samples over `size` ranks; the sum is n. Without weights shares differ by at most one
// and the larger ones go to low ranks. With weights (one per rank, relative speed) shares are
// proportional by largest remainder, ties to low ranks; a share may be 0. A weight that is negative
// or not finite counts as 0; when none is above 0, they count as absent.
std::vector<std::int64_t> split(std::int64_t n, int size, std::span<const double> weights = {});

// Where the share of `rank` begins in the step: the sum of the shares before it.
std::int64_t offset(std::span<const std::int64_t> shares, int rank);

// The number of samples in each call of compute for one share: as few calls as `micro_batch` allows
// (the most samples that a call may get; 0: no limit), of sizes as equal as possible. No call for
// an empty share.
std::vector<std::int64_t> pieces(std::int64_t share, std::int64_t micro_batch);

}  // namespace elasticrun::worker::core
