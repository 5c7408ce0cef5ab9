// train(): takes the steps of a call, and calls the program's functions in each of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elasticrun/elasticrun.h"
#include "worker/training/steps.hpp"

namespace elasticrun::worker::training {

struct Callbacks {
  elasticrun_compute_fn compute = nullptr;
  elasticrun_apply_fn apply = nullptr;
  void* user = nullptr;
  elasticrun_epoch_fn epoch = nullptr;
  void* epoch_user = nullptr;
};

// Returns when this call of train is over; throws Stop. The caller has checked the options.
void train(Steps& steps, const elasticrun_train_options& options, const Callbacks& callbacks);

}  // namespace elasticrun::worker::training
