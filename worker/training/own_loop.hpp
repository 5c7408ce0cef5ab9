// The lower-level calls, for a program with a loop of its own: start, then for each step its own
// compute, all_reduce, its own apply, commit; finish after the last one.
//
// The library cannot repeat the program's step, so it returns WORLD_CHANGED. By then it has undone
// what the step did to the registered state, which any member may receive from that moment on, and
// has entered the next world; so the program has nothing to undo, and the progress names the step
// to begin.
//
// A commit may fail on one rank and succeed on the others. The state that this rank then receives
// includes the step, so the commit has succeeded after all and returns like any other.
// WORLD_CHANGED would make the program doubt a step that counts.
//
// A collective may have succeeded on one rank and failed on another, and only commits are compared.
// So what follows the last commit (an evaluation) begins again on all ranks when the world changes
// before all have finished: finish() returns WORLD_CHANGED also on ranks that are already in it,
// for the others need them.
#pragma once

#include <cstdint>
#include <functional>

#include "worker/control/world_session.hpp"
#include "worker/state/state_copy.hpp"
#include "worker/training/divergence.hpp"
#include "worker/training/step_calls.hpp"
#include "worker/training/work_queue.hpp"

namespace elasticrun::worker::training {

class OwnLoop {
 public:
  // The session's table is sealed. This and each call throw Stop for anything but success.
  explicit OwnLoop(control::WorldSession& session);
  ~OwnLoop();
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  void start();
  void all_reduce(void* data, collective::DataType type, std::size_t count);
  // The same on a thread of the library's: the memory is not touched until wait() has returned.
  // Each other collective, and commit, waits first.
  void all_reduce_start(void* data, collective::DataType type, std::size_t count);
  void all_reduce_wait();
  void broadcast(void* data, std::size_t bytes, int root);
  void barrier();
  // A collective has been called since the last commit.
  bool in_step() const { return !calls_.none(); }
  // The registered state is as it was committed, as far as it lies in the host's memory.
  bool holds_committed() const { return committed_.holds(); }
  // Copies the state that the next step begins with; between two steps, where the state source has
  // changed.
  void keep_state();
  // Adds to the number of samples that this worker has computed in the step under way, for the
  // step meter.
  void count(std::int64_t samples) { samples_ += samples; }
  void commit();
  // Blocks until all members have finished; until then this one may be the only source of the last
  // step.
  void finish();
  bool finished() const { return finished_; }

 private:
  void collective(const std::function<void(collective::Group&)>& operation);
  bool settle();
  void stop_started();
  bool agree();
  [[noreturn]] void calls_differ(int with_steps);
  void enter();
  void begin_step();
  void abandon();
  [[noreturn]] void begin_again();

  control::WorldSession& session_;
  Divergence divergence_;
  state::StateCopy committed_;  // the state that the next step begins with
  bool has_committed_ = false;  // here, not only received
  bool finished_ = false;
  bool left_ = false;  // a member has left after the last commit, and the next world is not entered
  // Since the last commit: when it was, the time in collectives, the samples computed, and what was
  // called.
  Time begun_{};
  Duration reduce_{};
  std::int64_t samples_ = 0;
  StepCalls calls_;
  std::size_t started_ = 0;       // all-reduces that are not waited for
  WorkQueue queue_{"er-reduce"};  // these
};

}  // namespace elasticrun::worker::training
