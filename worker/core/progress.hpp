// Where training stands: the part of the state that is not the program's own.
//
// It travels to newcomers and is swapped together with the weights, so that every holder of the
// state takes exactly the samples in its next step that no member has used yet. It holds what
// cannot be computed again, and nothing of the world: the plan says how a step is split.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "worker/core/noise_scale.hpp"

namespace elasticrun::worker::core {

// Places in the order of an epoch, first <= last; the permutation gives the sample at a place.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;  // one past

  std::int64_t count() const { return last - first; }
  bool operator==(const Range&) const = default;
};

struct Progress {
  std::int64_t train_call = 0;         // number of the call of train, from 1; 0: none yet
  std::int64_t epoch = 0;              // epoch of that call, from 0
  std::int64_t cursor = 0;             // number of places of the epoch that are used; all of them
                                       // only where the end of an epoch is a step of its own
  std::int64_t step = 0;               // number of steps committed over all calls
  std::int64_t base_batch = 0;         // batch the learning rate was tuned for; 0: not known yet
  std::uint64_t seed = 0;              // seed of the order of the samples
  std::vector<std::string> sum_names;  // names used in step.sum, in the order of the reduction
  // While the gradients' noise is measured: the estimate of it, and the number of steps of the base
  // batch that training is worth by now (Pollux's scale-invariant steps).
  NoiseScale noise;
  double scale_invariant_steps = 0;

  bool operator==(const Progress&) const = default;

  // The progress after one more committed step of `global_batch` samples, in an epoch of `samples`.
  // `end_is_step`: the epoch does not end with its last samples, but with after_end().
  Progress next(std::int64_t global_batch, std::int64_t samples, bool end_is_step = false) const;
  // After the step at the end of an epoch.
  Progress after_end() const;
};

// The places that the next step takes: `global_batch` places from the cursor on, or what is left of
// the epoch. Never empty.
Range step_range(const Progress& progress, std::int64_t global_batch, std::int64_t samples);

// Encoded as bytes that are the same on every platform. Decoding returns an error when they are
// damaged or of another version of the library.
std::string encode(const Progress& progress);
Result<Progress> decode_progress(std::string_view bytes);

}  // namespace elasticrun::worker::core
