// The C interface: loops of the program's own. Those of begin take steps as train does; those of
// start make their own.
#include <fmt/format.h>

#include "worker/api/job.hpp"
#include "worker/core/shares.hpp"

namespace worker = elasticrun::worker;
using namespace worker::api;

namespace {

worker::training::OwnLoop& started(elasticrun_job& job, const char* what) {
  if (job.steps) misuse(fmt::format("{}: train sums figures by step.sum instead", what));
  check_usable(job, what);
  if (!job.loop) misuse(fmt::format("{}: call start first", what));
  if (job.loop->finished()) misuse(fmt::format("{}: the loop has finished", what));
  return *job.loop;
}

// The type of numbers to sum.
worker::collective::DataType summed(const elasticrun_job& job, const char* what, const void* data,
                                    elasticrun_type type, std::size_t count) {
  if (!data && count > 0) misuse(fmt::format("{}: no memory (null)", what));
  check_reach(job, data, what);
  const auto numbers = type_of(type, what);
  if (is_integer(numbers))
    misuse(fmt::format("{}: integers are not summed; sum them as float64", what));
  return numbers;
}

worker::training::Steps& stepping(elasticrun_job& job, const char* what) {
  check_usable(job, what);
  if (!job.stepping) misuse(fmt::format("{}: call begin first", what));
  return *job.steps;
}

// What the program does from here on, until it calls again, is neither a step nor a hang in one.
void leave_to_program(elasticrun_job& job) {
  job.meter.enter(worker::control::StepMeter::Phase::epoch, std::chrono::steady_clock::now());
}

void end(elasticrun_job& job) {
  job.stepping = false;
  job.steps->end();
}

// Runs a part of a loop of begin, which is over when that throws.
template <class Part>
void in_loop(elasticrun_job& job, Part part) {
  try {
    part();
  } catch (...) {
    end(job);
    throw;
  }
}

// What both enter and begin ask for.
void before_steps(elasticrun_job& job, const std::string& what) {
  check_usable(job, what.c_str());
  if (job.loop) misuse(what + ": this job runs a loop of its own (start); use one or the other");
  if (job.stepping) misuse(what + ": the steps of the last call are not over");
  check_state(job, what.c_str());
  check_gradients(job, what.c_str());
  worker::control::WorldSession& session = session_of(job);
  if (!job.steps) job.steps.emplace(session);
}

// A collective in a loop of begin: only at the end of an epoch.
template <class Collective>
void at_epoch_end(elasticrun_job& job, const char* what, Collective collective) {
  check_usable(job, what);
  if (!job.stepping || !job.steps->at_end_step())
    misuse(
        fmt::format("{}: train sums figures by step.sum instead; a loop of begin with epoch_steps "
                    "has collectives at the end of an epoch, before reduce",
                    what));
  bool happens = false;
  in_loop(job, [&] { happens = collective(*job.steps); });
  leave_to_program(job);
  if (!happens)
    throw worker::control::Stop(ELASTICRUN_WORLD_CHANGED,
                                "the world has changed: this end of the epoch does not happen; "
                                "reduce says so, too, and next tells the end again");
}

void commit_step(elasticrun_job& job) {
  worker::training::Steps& steps = stepping(job, "commit");
  if (!steps.applies()) misuse("commit: the step is not reduced; call reduce first");
  in_loop(job, [&] { steps.commit(); });
  leave_to_program(job);
}

}  // namespace

extern "C" {

// ---- steps of the library's

elasticrun_status elasticrun_enter(elasticrun_job* job, const elasticrun_train_options* options,
                                   int64_t* epoch) {
  return guarded(job, [&] {
    if (!epoch) misuse("enter: no place for the epoch (null)");
    const elasticrun_train_options known =
        options ? checked(options, "enter", 0) : elasticrun_train_options{};
    before_steps(*job, "enter");
    in_loop(*job, [&] { *epoch = job->steps->enter(known); });
    job->entered = *epoch != worker::training::Steps::every_epoch;
    if (!job->entered) return end(*job);
    leave_to_program(*job);
  });
}

elasticrun_status elasticrun_begin(elasticrun_job* job, const elasticrun_train_options* options) {
  return guarded(job, [&] {
    const elasticrun_train_options checked_options = checked(options, "begin");
    before_steps(*job, "begin");
    job->entered = false;
    job->stepping = true;
    in_loop(*job, [&] { job->steps->begin(checked_options, "the code at the end of the epoch"); });
  });
}

elasticrun_status elasticrun_next(elasticrun_job* job, elasticrun_step** step) {
  if (step) *step = nullptr;
  return guarded(job, [&] {
    if (!step) misuse("next: no place for the step (null)");
    worker::training::Steps& steps = stepping(*job, "next");
    if (steps.applies()) misuse("next: the step is reduced; apply and commit it first");
    if (steps.computes() && steps.is_last_piece())
      misuse("next: this was the last piece of the step; call reduce first");
    in_loop(*job, [&] {
      const auto next = steps.next();
      if (next == worker::training::Steps::Next::over) return end(*job);
      *step = &steps.step();
    });
  });
}

elasticrun_status elasticrun_reduce(elasticrun_job* job) {
  return guarded(job, [&] {
    worker::training::Steps& steps = stepping(*job, "reduce");
    if (!steps.computes() && !steps.at_end_step())
      misuse("reduce: no step is under way; call next first");
    if (steps.computes() && !steps.is_last_piece())
      misuse("reduce: the step has another piece; call next first");
    bool happens = false;
    in_loop(*job, [&] { happens = steps.reduce(); });
    if (happens) return;
    leave_to_program(*job);
    throw worker::control::Stop(
        ELASTICRUN_WORLD_CHANGED,
        "the world has changed: this step did not happen; call next, which gives its samples "
        "again");
  });
}

// ---- a loop of one's own

elasticrun_status elasticrun_start(elasticrun_job* job) {
  return guarded(job, [&] {
    check_usable(*job, "start");
    if (job->steps) misuse("start: this job has called train or begin; use one or the other");
    if (job->loop) misuse("start: called twice");
    check_state(*job, "start");
    job->loop.emplace(session_of(*job));
    job->loop->start();
  });
}

elasticrun_status elasticrun_all_reduce(elasticrun_job* job, void* data, elasticrun_type type,
                                        size_t count) {
  return guarded(job, [&] {
    const auto sum = [&](auto& loop) {
      return loop.all_reduce(data, summed(*job, "all_reduce", data, type, count), count);
    };
    if (job->steps) return at_epoch_end(*job, "all_reduce", sum);
    sum(started(*job, "all_reduce"));
  });
}

elasticrun_status elasticrun_all_reduce_start(elasticrun_job* job, void* data, elasticrun_type type,
                                              size_t count) {
  return guarded(job, [&] {
    worker::training::OwnLoop& loop = started(*job, "all_reduce_start");
    loop.all_reduce_start(data, summed(*job, "all_reduce_start", data, type, count), count);
  });
}

elasticrun_status elasticrun_all_reduce_wait(elasticrun_job* job) {
  return guarded(job, [&] { started(*job, "all_reduce_wait").all_reduce_wait(); });
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
  return guarded(job, [&] {
    if (job->steps)
      return at_epoch_end(*job, "barrier", [](auto& steps) { return steps.barrier(); });
    started(*job, "barrier").barrier();
  });
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
  return guarded(job, [&] {
    if (job->steps) return commit_step(*job);
    started(*job, "commit").commit();
  });
}

elasticrun_status elasticrun_finish(elasticrun_job* job) {
  return guarded(job, [&] { started(*job, "finish").finish(); });
}

int64_t elasticrun_committed(const elasticrun_job* job) {
  return job && job->session ? job->session->progress.step : 0;
}

elasticrun_status elasticrun_leave(elasticrun_job* job) {
  return guarded(job, [&] {
    check_usable(*job, "leave");
    session_of(*job);
    if (job->stepping && job->steps->applies())
      misuse("leave: the step is reduced; apply and commit it first");
    job->member_lock.leave("left by itself");
  });
}

}  // extern "C"
