// A job as the C interface holds it, and what all functions of that interface do first and last:
// check their arguments, and turn exceptions into a status and an error text. No exception passes
// through them, for the caller may be C or Python.
#pragma once

#include <unistd.h>

#include <memory>
#include <new>
#include <optional>
#include <string>

#include "elasticrun/elasticrun.h"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/control/stop.hpp"
#include "worker/control/world_session.hpp"
#include "worker/state/state.hpp"
#include "worker/training/own_loop.hpp"
#include "worker/training/steps.hpp"
#include "worker/training/train_loop.hpp"

struct elasticrun_job {
  explicit elasticrun_job(elasticrun::WorkerId self) : member_lock(self) {}

  elasticrun::worker::state::StateTable table;
  elasticrun::worker::control::StepMeter meter;
  elasticrun::worker::control::MemberLock member_lock;
  std::shared_ptr<elasticrun::worker::gpu::Gpu> gpu;       // null: no GPU is known to be used
  elasticrun::worker::gpu::cuda::Stream stream = nullptr;  // the program's stream on that GPU
  // Null: open has failed.
  std::unique_ptr<elasticrun::worker::control::ControlChannel> channel;
  // From the first train, begin or start on.
  std::optional<elasticrun::worker::control::WorldSession> session;
  std::optional<elasticrun::worker::training::Steps> steps;   // of train, and of begin
  std::optional<elasticrun::worker::training::OwnLoop> loop;  // of start
  elasticrun::worker::training::Callbacks callbacks;
  bool busy = false;      // inside train
  bool entered = false;   // between enter and begin
  bool stepping = false;  // between begin and the end of its steps
  bool failed = false;    // the last call returned neither OK nor WORLD_CHANGED
  std::string error;
  pid_t owner = ::getpid();
};

namespace elasticrun::worker::api {

inline constexpr const char* no_memory = "out of memory";

void set_error(elasticrun_job* job, const char* text) noexcept;

// Keeps the text of an exception that is no Stop, and takes this worker out of the world: its state
// may be half-new.
elasticrun_status fail_unexpectedly(elasticrun_job* job, const char* text) noexcept;

// Runs the body of a function of the interface; returns its status and keeps the error text.
template <class Body>
elasticrun_status guarded(elasticrun_job* job, Body&& body) noexcept {
  if (!job) return ELASTICRUN_MISUSE;
  try {
    body();
    job->failed = false;
    return ELASTICRUN_OK;
  } catch (const control::Stop& stop) {
    set_error(job, stop.what());
    job->failed = stop.status != ELASTICRUN_WORLD_CHANGED;
    return stop.status;
  } catch (const std::bad_alloc&) {
    return fail_unexpectedly(job, no_memory);
  } catch (const std::exception& error) {
    return fail_unexpectedly(job, error.what());
  } catch (...) {
    return fail_unexpectedly(job, "an unknown error");
  }
}

// In a world, or waiting for one, with steps to make.
bool in_training(const elasticrun_job& job);
[[noreturn]] void misuse(const std::string& text);
// These throw Stop. `what` is the function of the interface, without its prefix.
void check_usable(const elasticrun_job& job, const char* what);
// Memory on a GPU that is not known yet is a mistake: the groups of a world know only a GPU that
// was found before they were made.
void check_reach(const elasticrun_job& job, const void* data, const char* what);
// Without registered state each worker would train on, and end with different weights.
void check_state(const elasticrun_job& job, const char* what);
void check_gradients(const elasticrun_job& job, const char* what);
// Options of every version of the interface; fields that a caller does not know yet are 0.
elasticrun_train_options checked(const elasticrun_train_options* given, const char* what,
                                 std::int64_t least_samples = 1);
collective::DataType type_of(elasticrun_type type, const char* what);

// Ends the registration, the first time.
control::WorldSession& session_of(elasticrun_job& job);

}  // namespace elasticrun::worker::api
