// The C interface: opens jobs, registers memory, trains; loop_api.cpp has the rest.
#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "base/check.hpp"
#include "elasticrun/elasticrun.h"
#include "worker/api/connect.hpp"
#include "worker/api/job.hpp"
#include "worker/training/train_loop.hpp"

namespace worker = elasticrun::worker;
using elasticrun::Result;
using elasticrun::worker::training::Reduction;
using namespace worker::api;

namespace {

constexpr const char* version = ELASTICRUN_VERSION;

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

// Tells the reduction about gradients of the step. Fails when the GPU has failed.
template <typename Tell>
elasticrun_status report(elasticrun_step* step, const Tell& tell) {
  if (!step || !step->reduction) return ELASTICRUN_MISUSE;
  try {
    return tell(*step->reduction) ? ELASTICRUN_OK : ELASTICRUN_MISUSE;
  } catch (...) {
    return ELASTICRUN_FAILED;
  }
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
  // A forked child has a copy of the memory, but not of the threads: they are the parent's.
  if (job->owner != ::getpid()) return;
  ER_CHECK(!job->busy, "elasticrun_close inside a callback of train");
  const bool unfinished = in_training(*job) || job->failed;
  if (job->session && job->channel)
    guarded(job, [&] {
      // After an exception has unwound the program, the end of the process reports the failure.
      const bool failed = job->member_lock.update([&](worker::core::Member& member) {
        const bool fails = unfinished && member.task() != worker::core::Task::released;
        if (fails) member.fail("the program closed its job in mid-training");
        return fails;
      });
      if (!failed) job->member_lock.leave("the program closed its job");
    });
  delete job;
}

const char* elasticrun_error(const elasticrun_job* job) {
  return job ? job->error.c_str() : worker::api::no_memory;
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

elasticrun_status elasticrun_stream(elasticrun_job* job, void* stream) {
  return guarded(job, [&] {
    check_usable(*job, "stream");
    job->stream = static_cast<worker::gpu::cuda::Stream>(stream);
    if (job->gpu) job->gpu->use_stream(job->stream);
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
    if (job->loop || job->stepping)
      misuse("train: this job runs a loop of its own; use one or the other");
    if (!compute || !apply) misuse("train: compute or apply is missing (null)");
    elasticrun_train_options checked_options = checked(options, "train");
    checked_options.epoch_steps = 0;  // on_epoch is told instead
    check_state(*job, "train");
    check_gradients(*job, "train");
    worker::control::WorldSession& session = session_of(*job);
    if (!job->steps) job->steps.emplace(session);
    job->callbacks.compute = compute;
    job->callbacks.apply = apply;
    job->callbacks.user = user;
    const Busy busy(job->busy);
    worker::training::train(*job->steps, checked_options, job->callbacks);
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
elasticrun_status elasticrun_step_ready(elasticrun_step* step, size_t gradient) {
  return report(step, [&](Reduction& reduction) { return reduction.ready(step, gradient); });
}
elasticrun_status elasticrun_step_ready_at(elasticrun_step* step, const size_t* gradients,
                                           const void* const* data, size_t count) {
  if (count > 0 && (!gradients || !data)) return ELASTICRUN_MISUSE;
  return report(step, [&](Reduction& reduction) {
    return reduction.ready(step, {gradients, count}, {data, count});
  });
}
elasticrun_status elasticrun_step_unset(elasticrun_step* step, size_t gradient) {
  return report(step, [&](Reduction& reduction) { return reduction.unset(step, gradient); });
}
int64_t elasticrun_step_gradient(const elasticrun_step* step, const char* name) {
  if (!step || !step->reduction || !name) return -1;
  const auto number = step->reduction->number_of(name);
  return number ? static_cast<int64_t>(*number) : -1;
}
int elasticrun_step_is_set(const elasticrun_step* step, size_t gradient) {
  const auto set = step && step->reduction ? step->reduction->is_set() : std::span<const char>();
  return gradient < set.size() ? set[gradient] : 0;
}
int elasticrun_step_last_piece(const elasticrun_step* step) { return step->last_piece ? 1 : 0; }
int64_t elasticrun_step_epochs_done(const elasticrun_step* step) { return step->epochs_done; }
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
  if (!job || !job->steps || !samples) return 0;
  try {
    return job->steps->upcoming(samples, count);
  } catch (...) {
    return 0;
  }
}

int64_t elasticrun_upcoming_piece(const elasticrun_job* job, size_t ahead, uint64_t* samples,
                                  size_t room) {
  if (!job || !job->steps || (!samples && room > 0)) return -1;
  try {
    const auto piece = job->steps->upcoming_piece(ahead);
    if (!piece) return -1;
    std::copy_n(piece->begin(), std::min(room, piece->size()), samples);
    return static_cast<int64_t>(piece->size());
  } catch (...) {
    return -1;
  }
}

// ---- the world

int32_t elasticrun_rank(const elasticrun_job* job) {
  return job && job->session ? job->session->rank() : 0;
}
int32_t elasticrun_size(const elasticrun_job* job) {
  return job && job->session ? job->session->size() : 1;
}
int64_t elasticrun_global_batch(const elasticrun_job* job) {
  return job && job->session ? job->session->world().plan.global_batch : 0;
}
uint64_t elasticrun_generation(const elasticrun_job* job) {
  return job && job->session ? job->session->generation().value : 0;
}

}  // extern "C"
