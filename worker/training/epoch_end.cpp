// The end of an epoch: told, and with options.epoch_steps a step of its own; see steps.hpp.
#include <fmt/format.h>

#include <string>

#include "base/boot_clock.hpp"
#include "worker/training/steps.hpp"

namespace elasticrun::worker::training {
namespace {

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

// Whether the progress stands at the end of an epoch that was not told in this world.
bool Steps::epoch_ends() const {
  const core::Progress& progress = session_.progress;
  if (options_.epoch_steps != 0) return at_end();
  if (listener_.empty() || progress.epoch == 0 || progress.cursor != 0) return false;
  return ended_ != EpochEnd{session_.generation(), call_, progress.epoch};
}

// The samples of an epoch are used, and the step at its end is not committed.
bool Steps::at_end() const {
  return options_.epoch_steps != 0 && session_.progress.cursor == options_.samples;
}

Steps::Next Steps::tell_epoch_end() {
  const std::int64_t done = session_.progress.epoch + (at_end() ? 1 : 0);
  ended_ = {session_.generation(), call_, done};
  session_.meter().enter(control::StepMeter::Phase::epoch, now());
  if (!at_end()) before_end_.emplace(session_.table());
  step_ = &new_step();
  step_->last_piece = true;
  step_->epoch = done - 1;
  step_->epochs_done = done;
  state_ = State::at_epoch_end;
  return Next::epoch_end;
}

void Steps::leave_epoch_end() {
  state_ = State::between;
  if (options_.epoch_steps != 0) return;
  session_.await_gpu();
  const std::string changed = before_end_->changed_since(session_.table());
  if (!changed.empty())
    session_.fail(ELASTICRUN_MISUSE,
                  fmt::format("{} changed {}, but it may be called again, or on some members "
                              "alone; change state in apply, in a step that ends an epoch "
                              "(step.ends_epoch())",
                              listener_, changed));
  session_.note_end(now());
  session_.meter().enter(control::StepMeter::Phase::idle, now());
}

// Only with its reduction the step begins, so that a world that ends while the program is at the
// end of an epoch is left at once. False: there is no world to step in at present.
bool Steps::begin_end() {
  begun_ = now();
  cost_ = {};
  part_ = {};
  return session_.member_lock().update(
      [](core::Member& member) { return member.begin_compute(boot_now()); });
}

}  // namespace elasticrun::worker::training
