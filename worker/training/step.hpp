// The step that compute and apply receive, as the C interface names it.
#pragma once

#include <cstdint>
#include <span>

#include "worker/training/gradient_reduction.hpp"
#include "worker/training/sums.hpp"

namespace elasticrun::worker::training {

struct StepFacts {
  std::span<const std::uint64_t> samples;  // of this call of compute; in apply, of the whole share
  std::int64_t number = 0;                 // number of steps committed before it
  std::int64_t epoch = 0;
  std::int64_t global_batch = 0;
  bool ends_epoch = false;
  bool last_piece = false;       // of this worker's share
  std::int64_t epochs_done = 0;  // > 0: this is no step, but the end of an epoch
  double lr_factor = 1;
  bool in_compute = false;
  Sums sums;
};

}  // namespace elasticrun::worker::training

struct elasticrun_step : elasticrun::worker::training::StepFacts {
  // Never changes: threads that are late read it while the rest is already of another step.
  elasticrun::worker::training::Reduction* reduction = nullptr;
};
