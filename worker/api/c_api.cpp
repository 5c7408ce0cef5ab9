// The C interface: checks the arguments, calls the library, turns exceptions into a status and an
// error text. No exception passes through it, for the caller may be C or Python.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "elasticrun/elasticrun.h"
#include "worker/api/connect.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/control/stop.hpp"
#include "worker/control/world_session.hpp"
#include "worker/core/shares.hpp"
#include "worker/state/state.hpp"
#include "worker/training/own_loop.hpp"
#include "worker/training/train_loop.hpp"

namespace worker = elasticrun::worker;
using elasticrun::Result;
using worker::control::Stop;

struct elasticrun_job {
  explicit elasticrun_job(elasticrun::WorkerId self) : member_lock(self) {}

  worker::state::StateTable table;
  worker::control::StepMeter meter;
  worker::control::MemberLock member_lock;
  std::shared_ptr<worker::gpu::Gpu> gpu;                     // null: no GPU is known to be used
  worker::gpu::cuda::Stream stream = nullptr;                // the program's stream on that GPU
  std::unique_ptr<worker::control::ControlChannel> channel;  // null: open has failed
  std::optional<worker::control::WorldSession> session;      // from the first train or start on
  std::optional<worker::training::TrainLoop> train_loop;
  std::optional<worker::training::OwnLoop> loop;
  worker::training::Callbacks callbacks;
  bool busy = false;  // inside train
  std::string error;
  pid_t owner = ::getpid();
};

namespace {

constexpr const char* version = ELASTICRUN_VERSION;
constexpr const char* no_memory = "out of memory";

void set_error(elasticrun_job* job, const char* text) noexcept {
  try {
    job->error = text;
  } catch (...) {
    job->error.clear();
  }
}

// Runs the body of a function of the interface; returns its status and keeps the error text.
template <class Body>
elasticrun_status guarded(elasticrun_job* job, Body&& body) noexcept {
  if (!job) return ELASTICRUN_MISUSE;
  try {
    body();
    return ELASTICRUN_OK;
  } catch (const Stop& stop) {
    set_error(job, stop.what());
    return stop.status;
  } catch (const std::bad_alloc&) {
    set_error(job, no_memory);
  } catch (const std::exception& error) {
    set_error(job, error.what());
  } catch (...) {
    set_error(job, "an unknown error");
  }
  return ELASTICRUN_FAILED;
}

[[noreturn]] void misuse(const std::string& text) { throw Stop(ELASTICRUN_MISUSE, text); }

void check_usable(const elasticrun_job& job, const char* what) {
  if (!job.channel)
    throw Stop(ELASTICRUN_FAILED, fmt::format("{}: the job could not be opened", what));
  if (job.owner != ::getpid())
    misuse(fmt::format("{}: the job belongs to process {}; a forked child cannot use it", what,
                       job.owner));
  if (job.busy)
    misuse(fmt::format("{}: called inside compute, apply or on_epoch; call it outside", what));
}

// True while a call of train runs.
class Busy {
 public:
  explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
  ~Busy() { flag_ = false; }
  Busy(const Busy&) = delete;

 private:
  bool& flag_;
};

void check(const Result<void>& outcome) {
  if (!outcome) misuse(outcome.error().text);
}

// Finds a GPU that the backend did not ask for, by the memory that the program registers.
void find_gpu(elasticrun_job& job, const void* data) {
  if (!job.gpu && data) job.gpu = worker::gpu::Gpu::holding(data, worker::api::own_host());
  if (!job.gpu) return;
  job.gpu->use_stream(job.stream);
  job.table.use_gpu(job.gpu);
}

// Throws MISUSE for memory on a GPU that is not known yet: the groups of a world know only a GPU
// that was found before they were made.
void check_reach(const elasticrun_job& job, const void* data, const char* what) {
  if (!job.gpu && worker::gpu::Gpu::holding(data, worker::api::own_host()))
    misuse(
        fmt::format("{}: the memory lies on a GPU; register what lies there before start, or "
                    "use --backend nccl",
                    what));
}

// Ends the registration, the first time.
worker::control::WorldSession& begin(elasticrun_job& job) {
  if (!job.session) {
    job.table.seal();
    job.session.emplace(job.member_lock, *job.channel, job.meter, job.table,
                        worker::api::own_session());
  }
  return *job.session;
}

elasticrun_train_options checked(const elasticrun_train_options* given) {
  if (!given) misuse("train: no options (null)");
  if (given->struct_size < sizeof(elasticrun_train_options))
    misuse(
        fmt::format("train: struct_size is {}, not {}; set it to "
                    "sizeof(elasticrun_train_options)",
                    given->struct_size, sizeof(elasticrun_train_options)));
  const elasticrun_train_options o = *given;
  const auto in_range = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least || value > worker::core::max_global_batch)
      misuse(fmt::format("train: {} is {}; it must be {} to 2^40", name, value, least));
  };
  in_range("samples", o.samples, 1);
  in_range("epochs", o.epochs, 1);
  in_range("batch", o.batch, 0);
  in_range("base_batch", o.base_batch, 0);
  in_range("micro_batch", o.micro_batch, 0);
  return o;
}

// Without registered state each worker would train on, and end with different weights.
void check_state(const elasticrun_job& job, const char* what) {
  if (!job.table.has('s'))
    misuse(fmt::format(
        "{}: no state is registered, so a newcomer would begin with its own weights; call state "
        "for what apply changes, or state(\"none\", nullptr, 0) where that is nothing",
        what));
}

void check_gradients(const elasticrun_job& job) {
  if (!job.table.has('g') && !job.table.has('b'))
    misuse(
        "train: no gradients are registered, so nothing of compute would reach the others; call "
        "gradients for what compute leaves, with 0 elements where that is sums alone (step.sum)");
}

worker::collective::DataType type_of(elasticrun_type type, const char* what) {
  if (type == ELASTICRUN_FLOAT32) return worker::collective::DataType::float32;
  if (type == ELASTICRUN_FLOAT64) return worker::collective::DataType::float64;
  misuse(fmt::format("{}: type {} is neither float32 nor float64", what, static_cast<int>(type)));
}

worker::training::OwnLoop& started(elasticrun_job& job, const char* what) {
  if (job.train_loop) misuse(fmt::format("{}: train sums figures by step.sum instead", what));
  check_usable(job, what);
  if (!job.loop) misuse(fmt::format("{}: call start first", what));
  if (job.loop->finished()) misuse(fmt::format("{}: the loop has finished", what));
  return *job.loop;
}

std::string name_or_empty(const char* name) { return name ? name : ""; }

}  // namespace

extern "C" {

const char* elasticrun_version(void) { return version; }

elasticrun_status elasticrun_open(elasticrun_job** job) {
  if (!job) return ELASTICRUN_MISUSE;
  *job = new (std::nothrow) elasticrun_job(worker::api::own_worker());
  if (!*job) return ELASTICRUN_FAILED;
  return guarded(*job, [&] {
    elasticrun_job& made = **job;
    made.channel = worker::api::open_channel(made.member_lock, made.meter, made.gpu, version);
  });
}

void elasticrun_close(elasticrun_job* job) {
  if (!job) return;
  ER_CHECK(!job->busy, "elasticrun_close inside a callback of train");
  // A forked child has a copy of the memory, but not of the threads: they are the parent's.
  if (job->owner != ::getpid()) return;
  if (job->session && job->channel)
    guarded(job, [&] {
      job->member_lock.update([](worker::core::Member& member) {
        if (member.task() != worker::core::Task::released)
          member.leave("the program closed its job");
      });
    });
  delete job;
}

const char* elasticrun_error(const elasticrun_job* job) {
  return job ? job->error.c_str() : no_memory;
}

elasticrun_status elasticrun_state(elasticrun_job* job, const char* name, void* data,
                                   size_t bytes) {
  return guarded(job, [&] {
    check_usable(*job, "state");
    find_gpu(*job, data);
    check(job->table.add_state(name_or_empty(name), data, bytes));
  });
}

elasticrun_status elasticrun_gradients(elasticrun_job* job, const char* name, void* data,
                                       elasticrun_type type, size_t count) {
  return guarded(job, [&] {
    check_usable(*job, "gradients");
    find_gpu(*job, data);
    check(job->table.add_gradients(name_or_empty(name), data, type_of(type, "gradients"), count));
  });
}

elasticrun_status elasticrun_buffers(elasticrun_job* job, const char* name, void* data,
                                     elasticrun_type type, size_t count) {
  return guarded(job, [&] {
    check_usable(*job, "buffers");
    find_gpu(*job, data);
    check(job->table.add_buffers(name_or_empty(name), data, type_of(type, "buffers"), count));
  });
}

elasticrun_status elasticrun_on_epoch(elasticrun_job* job, elasticrun_epoch_fn callback,
                                      void* user) {
  return guarded(job, [&] {
    check_usable(*job, "on_epoch");
    job->callbacks.epoch = callback;
    job->callbacks.epoch_user = user;
  });
}

elasticrun_status elasticrun_train(elasticrun_job* job, const elasticrun_train_options* options,
                                   elasticrun_compute_fn compute, elasticrun_apply_fn apply,
                                   void* user) {
  return guarded(job, [&] {
    check_usable(*job, "train");
    if (job->loop) misuse("train: this job runs a loop of its own (start); use one or the other");
    if (!compute || !apply) misuse("train: compute or apply is missing (null)");
    const elasticrun_train_options checked_options = checked(options);
    check_state(*job, "train");
    check_gradients(*job);
    worker::control::WorldSession& session = begin(*job);
    if (!job->train_loop) job->train_loop.emplace(session);
    job->callbacks.compute = compute;
    job->callbacks.apply = apply;
    job->callbacks.user = user;
    const Busy busy(job->busy);
    job->train_loop->train(checked_options, job->callbacks);
  });
}

// ---- the step

const uint64_t* elasticrun_step_samples(const elasticrun_step* step, size_t* count) {
  if (count) *count = step->samples.size();
  return step->samples.data();
}
int64_t elasticrun_step_number(const elasticrun_step* step) { return step->number; }
int64_t elasticrun_step_epoch(const elasticrun_step* step) { return step->epoch; }
int64_t elasticrun_step_global_batch(const elasticrun_step* step) { return step->global_batch; }
int elasticrun_step_ends_epoch(const elasticrun_step* step) { return step->ends_epoch ? 1 : 0; }
double elasticrun_step_lr_factor(const elasticrun_step* step) { return step->lr_factor; }

elasticrun_status elasticrun_step_sum(elasticrun_step* step, const char* name, double x) {
  if (!step || !name || !step->in_compute) return ELASTICRUN_MISUSE;
  try {
    return step->sums.add(name, x) ? ELASTICRUN_OK : ELASTICRUN_MISUSE;
  } catch (...) {
    return ELASTICRUN_FAILED;
  }
}

double elasticrun_step_total(const elasticrun_step* step, const char* name) {
  return step && name ? step->sums.total(name) : 0;
}

size_t elasticrun_upcoming(const elasticrun_job* job, uint64_t* samples, size_t count) {
  if (!job || !job->train_loop || !samples) return 0;
  try {
    return job->train_loop->upcoming(samples, count);
  } catch (...) {
    return 0;
  }
}

// ---- the world

int32_t elasticrun_rank(const elasticrun_job* job) {
  return job && job->session ? job->session->rank() : 0;
}
int32_t elasticrun_size(const elasticrun_job* job) {
  return job && job->session ? job->session->size() : 1;
}
uint64_t elasticrun_generation(const elasticrun_job* job) {
  return job && job->session ? job->session->generation().value : 0;
}

// ---- a loop of one's own

elasticrun_status elasticrun_start(elasticrun_job* job) {
  return guarded(job, [&] {
    check_usable(*job, "start");
    if (job->train_loop) misuse("start: this job has called train; use one or the other");
    if (job->loop) misuse("start: called twice");
    check_state(*job, "start");
    job->loop.emplace(begin(*job));
    job->loop->start();
  });
}

elasticrun_status elasticrun_all_reduce(elasticrun_job* job, void* data, elasticrun_type type,
                                        size_t count) {
  return guarded(job, [&] {
    worker::training::OwnLoop& loop = started(*job, "all_reduce");
    if (!data && count > 0) misuse("all_reduce: no memory (null)");
    check_reach(*job, data, "all_reduce");
    loop.all_reduce(data, type_of(type, "all_reduce"), count);
  });
}

elasticrun_status elasticrun_broadcast(elasticrun_job* job, void* data, size_t bytes,
                                       int32_t root) {
  return guarded(job, [&] {
    worker::training::OwnLoop& loop = started(*job, "broadcast");
    if (!data && bytes > 0) misuse("broadcast: no memory (null)");
    check_reach(*job, data, "broadcast");
    if (root < 0 || root >= job->session->size())
      misuse(fmt::format("broadcast: root {} is not in a world of {}", root, job->session->size()));
    loop.broadcast(data, bytes, root);
  });
}

elasticrun_status elasticrun_barrier(elasticrun_job* job) {
  return guarded(job, [&] { started(*job, "barrier").barrier(); });
}

elasticrun_status elasticrun_samples(elasticrun_job* job, int64_t count) {
  return guarded(job, [&] {
    worker::training::OwnLoop& loop = started(*job, "samples");
    if (count < 0 || count > worker::core::max_global_batch)
      misuse(fmt::format("samples: {} is not in 0 to 2^40", count));
    loop.count(count);
  });
}

elasticrun_status elasticrun_commit(elasticrun_job* job) {
  return guarded(job, [&] { started(*job, "commit").commit(); });
}

elasticrun_status elasticrun_finish(elasticrun_job* job) {
  return guarded(job, [&] { started(*job, "finish").finish(); });
}

elasticrun_status elasticrun_stream(elasticrun_job* job, void* stream) {
  return guarded(job, [&] {
    check_usable(*job, "stream");
    job->stream = static_cast<worker::gpu::cuda::Stream>(stream);
    if (job->gpu) job->gpu->use_stream(job->stream);
  });
}

int64_t elasticrun_committed(const elasticrun_job* job) {
  return job && job->session ? job->session->progress.step : 0;
}

elasticrun_status elasticrun_leave(elasticrun_job* job) {
  return guarded(job, [&] {
    check_usable(*job, "leave");
    begin(*job);
    job->member_lock.update([](worker::core::Member& member) { member.leave("left by itself"); });
  });
}

}  // extern "C"
