// Where training stands: the part of the state that is not the program's own.
//
// It travels to newcomers and is swapped together with the weights, so that the next step of
// whoever holds the state takes exactly the samples that nobody has used yet. It holds what cannot
// be computed again, and nothing of the world: how a step is split is the plan's matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "worker/core/noise_scale.hpp"

namespace elasticrun::worker::core {

// Places of an epoch, first <= last; the sample at a place is the permutation's.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;  // one past

  std::int64_t count() const { return last - first; }
  bool operator==(const Range&) const = default;
};

struct Progress {
  std::int64_t train_call = 0;         // 1, 2, ...: which call of train; 0: none yet
  std::int64_t epoch = 0;              // of that call, from 0
  std::int64_t cursor = 0;             // places of the epoch that are used, < samples
  std::int64_t step = 0;               // committed over all calls
  std::int64_t base_batch = 0;         // batch the learning rate was tuned for; 0: not known yet
  std::uint64_t seed = 0;              // of the order of the samples
  std::vector<std::string> sum_names;  // figures of step.sum, in the order of the reduction
  // While the gradients' noise is measured: what is known of it, and how many steps of the base
  // batch training is worth by now (Pollux's scale-invariant steps).
  NoiseScale noise;
  double scale_invariant_steps = 0;

  bool operator==(const Progress&) const = default;

  // After one more committed step of global batch G in an epoch of N samples.
  Progress next(std::int64_t global_batch, std::int64_t samples) const;
};

// The places that the next step takes: the cursor and G on, or what is left of the epoch. Never
// empty.
Range step_range(const Progress& progress, std::int64_t global_batch, std::int64_t samples);

// Bytes, the same on every platform; decode checks that they are whole.
std::string encode(const Progress& progress);
Result<Progress> decode_progress(std::string_view bytes);

}  // namespace elasticrun::worker::core
