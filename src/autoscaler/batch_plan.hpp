// What a world of a given size computes per step: global batch, weights, learning-rate factor.
//
// The user says two things: the batch one device computes efficiently (b) and the largest batch
// the training bears (B). Below the cap the batch grows with the workers, beyond it the shares
// shrink. Keeping the batch constant at every size (strong scaling) would be simpler, but leaves
// small shares on many devices, and most programs train well with some more than their base batch.
//
// Only the whole is planned here; who computes which samples follows from the plan by arithmetic.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::autoscaler {

// How the learning rate follows the batch. linear: Goyal et al. 2017; sqrt: Krizhevsky 2014;
// adascale: Johnson et al. 2020, by the noise that the workers measure in their gradients.
enum class LrRule { none, linear, sqrt, adascale };

Result<LrRule> parse_lr_rule(std::string_view name);
std::string_view to_text(LrRule rule);

// Beyond it workers refuse to split a step (worker/core/shares.hpp), and sums of samples could
// overflow.
inline constexpr std::int64_t most_global_batch = std::int64_t{1} << 40;

// All batches in samples; 0 is "not said".
struct BatchRule {
  std::int64_t max_batch = 0;   // B: largest global batch
  std::int64_t batch = 0;       // b: efficient on one device
  std::int64_t base_batch = 0;  // M: the batch the learning rate was tuned for
  LrRule lr_rule = LrRule::linear;
  bool measure_noise = false;  // not for the learning rate alone
};

struct BatchPlan {
  std::int64_t global_batch = 0;  // samples per step over all workers; 0: the rule says nothing
  std::int64_t micro_batch = 0;   // most samples one compute call may get; 0: no limit
  std::vector<double> weights;    // of the shares, per rank; empty: all equal
  double lr_factor = 1;           // what the program is told to multiply its rate with
  std::int64_t noise_base = 0;    // M, where workers measure the gradients' noise; 0: they do not
  bool adascale = false;          // the factor follows that noise, and lr_factor is only its begin
};

// With 0 in place of what is below 0, which only a mistaken program says.
BatchRule sound(BatchRule rule);

// `weights` are one per rank, or none; one that is 0 is an empty share, and not all are. Without a
// base batch the factor is 1. The global batch is never more than most_global_batch.
BatchPlan plan(const BatchRule& rule, int size, std::vector<double> weights);

}  // namespace elasticrun::autoscaler
