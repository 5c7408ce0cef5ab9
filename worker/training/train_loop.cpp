// See train_loop.hpp.
#include "worker/training/train_loop.hpp"

#include <fmt/format.h>

namespace elasticrun::worker::training {
namespace {

// The state may be half-new, so this process must not be a source of it any more.
void check(Steps& steps, const char* which, int code) {
  if (code == 0) return;
  steps.fail(ELASTICRUN_CALLBACK,
             fmt::format("{} returned {} in step {} of epoch {}; this worker is out of the world",
                         which, code, steps.step().number, steps.step().epoch));
}

}  // namespace

void train(Steps& steps, const elasticrun_train_options& options, const Callbacks& callbacks) {
  steps.begin(options, callbacks.epoch ? "on_epoch" : "");
  const struct Ending {
    Steps& steps;
    ~Ending() { steps.end(); }
  } ending{steps};
  for (;;) {
    const Steps::Next next = steps.next();
    if (next == Steps::Next::over) return;
    if (next == Steps::Next::epoch_end) {
      check(steps, "on_epoch", callbacks.epoch(steps.step().epochs_done, callbacks.epoch_user));
      continue;
    }
    elasticrun_step& step = steps.step();
    if (!step.samples.empty()) check(steps, "compute", callbacks.compute(&step, callbacks.user));
    if (!steps.is_last_piece() || !steps.reduce()) continue;
    check(steps, "apply", callbacks.apply(&step, callbacks.user));
    steps.commit();
  }
}

}  // namespace elasticrun::worker::training
