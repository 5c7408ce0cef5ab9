// The lower-level calls, for a program with a loop of its own: start, then for each step its own
// compute, all_reduce, its own apply, commit; finish after the last one.
//
// The library cannot repeat the program's step, so it says WORLD_CHANGED. A collective that failed
// enters the next world before it says so. A commit that failed does not: the program may have
// applied the step already, and must undo that before its memory is anybody's state; so the next
// call enters.
//
// A collective may have succeeded on one rank and failed on another, and only commits are compared.
// So what follows the last commit (an evaluation) begins again on all ranks when the world changes
// before all have finished: who is in finish() already is told so as well, for the others need it.
#pragma once

#include <functional>

#include "worker/presence.hpp"

namespace elasticrun::worker {

class OwnLoop {
 public:
  // Of a sealed table.
  explicit OwnLoop(Presence& presence) : presence_(presence) {}

  // Each throws Stop for anything but success.
  void start();
  void all_reduce(void* data, DataType type, std::size_t count);
  void broadcast(void* data, std::size_t bytes, int root);
  void barrier();
  void commit();
  // Until all members have finished; until then this one may be the only source of the last step.
  void finish();
  bool finished() const { return finished_; }

 private:
  void collective(const std::function<void(Group&)>& operation);
  bool begin();
  void enter_next();
  [[noreturn]] void commit_failed();

  Presence& presence_;
  bool commit_failed_ = false;  // and no collective has been called since
  bool unsettled_ = false;      // a collective has succeeded, and no commit has followed
  bool finished_ = false;
  Time last_commit_{};
  Duration reduce_{};  // since the last commit
};

}  // namespace elasticrun::worker
