// The end of an epoch: told, and with options.epoch_steps a step of its own; see steps.hpp.
#include <fmt/format.h>

#include <string>

#include "base/hash.hpp"
#include "worker/core/agreement.hpp"
#include "worker/training/step_calls.hpp"
#include "worker/training/steps.hpp"

namespace elasticrun::worker::training {

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
  session_.meter().enter(control::StepMeter::Phase::epoch, control::now());
  if (!at_end()) before_end_.emplace(session_.table());
  step_ = &new_step();
  step_->last_piece = true;
  step_->epoch = done - 1;
  step_->epochs_done = done;
  end_fails_ = false;
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
  session_.note_end(control::now());
  session_.meter().enter(control::StepMeter::Phase::idle, control::now());
}

// Only with its first reduction the step begins, so that a world that ends while the program is at
// the end of an epoch is left at once. False: there was no world to step in, now or in an earlier
// call; a call that is left out must not be followed by others, which would meet it on other ranks.
bool Steps::begin_end() {
  if (end_fails_) return false;
  begun_ = control::now();
  cost_ = {};
  part_ = {};
  end_fails_ = !session_.begin_compute();
  return !end_fails_;
}

bool Steps::all_reduce(void* data, collective::DataType type, std::size_t count) {
  return collective(all_reduce_call(type, count),
                    [&](collective::Group& group) { group.all_reduce(data, type, count); });
}

bool Steps::barrier() {
  return collective(barrier_call, [](collective::Group& group) { group.barrier(); });
}

bool Steps::collective(const std::string& call,
                       const std::function<void(collective::Group&)>& operation) {
  if (!begin_end()) return false;
  try {
    session_.await_gpu();
    session_.meter().enter(control::StepMeter::Phase::reduce, control::now());
    collective::Group& group = *session_.group();
    check_agreement(group);
    agree_on_call(group, call);
    operation(group);
    session_.collective_ended();
    return true;
  } catch (const collective::GroupBroken& error) {
    end_fails_ = true;
    session_.broken(error);
    return false;
  }
}

// Before each collective at the end of an epoch. A rank that makes another call than the rest would
// hang, or take its numbers for theirs.
void Steps::agree_on_call(collective::Group& group, const std::string& call) {
  Hash hash;
  hash.add(call);
  const core::Agreement agreement(hash.value());
  core::Agreement::Row sums = agreement.mine();
  group.all_reduce(sums.data(), collective::DataType::float64, sums.size());
  if (!agreement.holds(sums, session_.size()))
    session_.fail_together(
        fmt::format("the end of an epoch: this worker calls {}, and another one "
                    "something else; all must make the same calls in the same order",
                    call));
}

}  // namespace elasticrun::worker::training
