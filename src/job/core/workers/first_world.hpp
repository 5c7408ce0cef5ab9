// The first workers of a job: they start together, when each of their hosts is there or has failed.
//
// They are told their ranks and their number, and a plain program has no second chance to hear
// them. A host that comes later is one to grow by.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::workers {

// A plain program does not speak: its first workers are all it gets.
enum class Program { plain, with_library };

enum class Start {
  choosing,   // there are too few slots, or it is not known how many there are
  gathering,  // the hosts of the first workers are not all there, or have failed
  begun,
};

class FirstWorld {
 public:
  Start state() const { return state_; }
  bool begun() const { return state_ == Start::begun; }
  // All of the first workers have been started.
  bool all_started() const { return begun() && slots_.empty(); }

  Program program() const { return program_; }
  void joined() { program_ = Program::with_library; }

  // These will be the slots, as far as is known. Again, while hosts are gathered.
  void choose(const std::vector<job::SlotId>& slots) {
    state_ = Start::gathering;
    slots_ = {slots.begin(), slots.end()};
  }
  std::size_t chosen() const { return slots_.size(); }
  void begin(const std::vector<job::SlotId>& slots) {
    state_ = Start::begun;
    order_ = slots;
    slots_ = {slots.begin(), slots.end()};
  }
  // One of the first workers is to be started there.
  bool awaits(job::SlotId slot) const { return slots_.contains(slot); }
  void started(job::SlotId slot) { slots_.erase(slot); }
  // A person wants to know who is waited for, once, when it takes long.
  Time wake_at() const { return state_ == Start::begun ? never : tell_at_; }
  void tell_missing_at(Time at) { tell_at_ = at; }

  // In rank order.
  const std::vector<job::SlotId>& order() const { return order_; }

 private:
  Program program_ = Program::plain;  // until a worker joins
  Start state_ = Start::choosing;
  std::set<job::SlotId> slots_;     // of first workers that are not started yet
  std::vector<job::SlotId> order_;  // of all of them
  Time tell_at_ = never;
};

}  // namespace elasticrun::job::workers
