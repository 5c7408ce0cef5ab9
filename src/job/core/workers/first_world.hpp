// The first workers of a job: they start together, when each of their hosts is up or has failed.
//
// Each one is started with its rank and their number, and a plain program has no second chance to
// learn these. A host that comes up later can only be used to grow. When a plain program is
// restarted, all workers are first workers again.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::workers {

// A plain program sends no messages: its first workers are all it gets until it is restarted.
enum class Program { plain, with_library };

enum class Start {
  choosing,   // there are too few slots, or their number is not known
  gathering,  // some hosts of the first workers are neither up nor failed
  begun,
  ending,  // all workers of a plain program are told to end, because it is to be restarted
};

class FirstWorld {
 public:
  Start state() const { return state_; }
  bool begun() const { return state_ == Start::begun; }
  // All of the first workers have been started.
  bool all_started() const { return begun() && slots_.empty(); }

  Program program() const { return program_; }
  void joined() { program_ = Program::with_library; }

  // The slots of the first workers, as far as is known; called again while hosts are gathered.
  void choose(const std::vector<SlotId>& slots) {
    state_ = Start::gathering;
    slots_ = {slots.begin(), slots.end()};
  }
  std::size_t chosen() const { return slots_.size(); }
  void begin(const std::vector<SlotId>& slots) {
    state_ = Start::begun;
    order_ = slots;
    slots_ = {slots.begin(), slots.end()};
  }
  void end_run() {
    state_ = Start::ending;
    slots_.clear();
  }
  // A first worker is still to be started there.
  bool awaits(SlotId slot) const { return slots_.contains(slot); }
  void started(SlotId slot) { slots_.erase(slot); }
  // When to tell the user, once, which hosts are still missing; never: no need (any more).
  Time wake_at() const { return state_ == Start::begun ? never : tell_at_; }
  void tell_missing_at(Time at) { tell_at_ = at; }

  // The slots of all first workers, in rank order.
  const std::vector<SlotId>& order() const { return order_; }

 private:
  Program program_ = Program::plain;  // until a worker joins
  Start state_ = Start::choosing;
  std::set<SlotId> slots_;     // of first workers that are not started yet
  std::vector<SlotId> order_;  // of all first workers
  Time tell_at_ = never;
};

}  // namespace elasticrun::job::workers
