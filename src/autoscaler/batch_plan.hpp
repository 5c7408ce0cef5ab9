// What a world of a given size computes per step: global batch, weights, learning-rate factor.
//
// The user gives two values: the batch that one device computes efficiently (b) and the largest
// global batch that the training tolerates (B). Up to that cap the global batch grows with the
// number of workers; beyond it each worker's share shrinks. A constant global batch at every size
// (strong scaling) would be simpler, but it leaves small shares on many devices, and most programs
// train well with somewhat more than their base batch.
//
// Only the totals are planned here; which worker computes which samples follows by arithmetic.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/plan.hpp"
#include "base/result.hpp"

namespace elasticrun::autoscaler {

// How the learning rate follows the batch. linear: Goyal et al. 2017; sqrt: Krizhevsky 2014;
// adascale: Johnson et al. 2020, from the gradient noise that the workers measure.
enum class LrRule { none, linear, sqrt, adascale };

Result<LrRule> parse_lr_rule(std::string_view name);
std::string_view to_text(LrRule rule);

// Upper bound of a global batch, in samples. Beyond it workers refuse to split a step
// (worker/core/shares.hpp), and sums of samples could overflow.
inline constexpr std::int64_t most_global_batch = std::int64_t{1} << 40;

// All batches are in samples; 0 means not given.
struct BatchRule {
  std::int64_t max_batch = 0;   // B: largest global batch
  std::int64_t batch = 0;       // b: efficient on one device
  std::int64_t base_batch = 0;  // M: the batch the learning rate was tuned for
  LrRule lr_rule = LrRule::linear;
  bool measure_noise = false;  // measure the gradient noise even if lr_rule does not need it
};

// The rule with negative batches, which only a faulty program gives, replaced by 0.
BatchRule sound(BatchRule rule);

// `weights` has one entry per rank, or is empty. A weight of 0 is an empty share; at least one must
// be above 0. Without a base batch lr_factor is 1. The global batch never exceeds
// most_global_batch.
BatchPlan plan(const BatchRule& rule, int size, std::vector<double> weights);

}  // namespace elasticrun::autoscaler
