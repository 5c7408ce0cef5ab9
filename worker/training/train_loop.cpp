// See train_loop.hpp.
#include "worker/training/train_loop.hpp"

#include <fmt/format.h>

#include "worker/training/program_call.hpp"

namespace elasticrun::worker::training {
namespace {

// If a function of the program fails, the state may be half-new, so this process must no longer be
// a source of it.
template <class Function>
void call_function(Steps& steps, const char* which, const Function& function) {
  const int code = call_program(function);
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
  const auto call = [&](const char* which, const auto& function) {
    call_function(steps, which, function);
  };
  for (;;) {
    const Steps::Next next = steps.next();
    if (next == Steps::Next::over) return;
    elasticrun_step* const step = &steps.step();
    if (next == Steps::Next::epoch_end) {
      call("on_epoch", [&] { return callbacks.epoch(step->epochs_done, callbacks.epoch_user); });
      continue;
    }
    if (!step->samples.empty())
      call("compute", [&] { return callbacks.compute(step, callbacks.user); });
    if (!steps.is_last_piece() || !steps.reduce()) continue;
    call("apply", [&] { return callbacks.apply(step, callbacks.user); });
    steps.commit();
  }
}

}  // namespace elasticrun::worker::training
