// The slots of the job and the workers in them: which slots should have a worker at a given size,
// and which are left alone for a while because their workers keep failing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::job {

struct SlotId {
  HostId host;
  std::int32_t index = 0;
  auto operator<=>(const SlotId&) const = default;
};

// What is known about one worker, from the order to start it to its exit.
struct Worker {
  SlotId slot;
  Time since{};           // of the order to start it
  bool running = false;   // its process exists
  bool joined = false;    // its library has spoken
  bool ready = false;     // in train, or was
  bool expected = false;  // its end is wanted: told to stop, dismissed, left
  Time stop_at = never;   // still there then: it is told to stop
  Time gone_by = never;   // told to stop: still there then, it hangs in the kernel
  std::string trouble;    // why it was fenced; empty: it was not
};

class Pool {
 public:
  // The slots that may be used, in rank order. Workers of slots that went are not touched here.
  void set_slots(std::vector<SlotId> slots);
  const std::vector<SlotId>& slots() const { return slots_; }
  // One of them may not be used any more.
  void drop(SlotId slot) { std::erase(slots_, slot); }

  WorkerId start(SlotId slot, Time now);
  Worker* find(WorkerId id);
  const Worker* find(WorkerId id) const;
  // The controller stood still for that time: no deadline of a worker has run.
  void stood_still(Duration time);
  const std::map<WorkerId, Worker>& workers() const { return workers_; }
  void erase(WorkerId id);
  std::optional<WorkerId> worker_in(SlotId slot) const;

  // The slots that should have a worker when `size` workers are wanted: those that have one first,
  // so that survivors stay (`members` before others, who is ready before who starts), then free
  // ones in order, then those that have a slow one or one that is left out.
  std::vector<SlotId> wanted(int size, Time now, const std::vector<WorkerId>& members = {}) const;
  // Beyond those that so many workers take there is a slot: free, or with a spare in it. Slots that
  // have a slow worker do not count.
  bool has_substitute(int size, Time now) const;

  // A worker failed there. The first failure costs nothing; then the pause doubles, up to five
  // minutes.
  void slot_failed(SlotId slot, Time now);
  // Its host has failed: there is a pause from the first time on.
  void host_failed(SlotId slot, Time now);
  // A worker there has committed a step: all is forgiven.
  void slot_works(SlotId slot);
  // Its worker is slower than others: it is replaced where another slot is free, and no other is
  // started there for a while, twice as long each time. Says for how long.
  Duration quarantine(SlotId slot, Time now);
  bool quarantined(SlotId slot, Time now) const;
  // No world could be formed with its worker, which is well by itself: neither it nor another one
  // there is tried for a while, twice as long each time. Says for how long.
  Duration leave_out(SlotId slot, Time now);
  bool left_out(SlotId slot, Time now) const;
  // Its worker left by itself: nobody takes its place.
  void retire(SlotId slot) { retired_.insert(slot); }
  // No slot will ever have a worker again; one in its pause will, and where there is none at
  // present others may come.
  bool all_retired() const;
  // When the next slot comes out of its pause.
  Time wake_at(Time now) const;
  // A worker could start there within a minute.
  bool usable_soon(SlotId slot, Time now) const {
    return usable_by(slot, now + std::chrono::minutes(1), now);
  }

 private:
  struct Trouble {
    int failures = 0;
    Time not_before{};
  };
  struct Quarantine {
    int times = 0;
    Time until{};
  };
  bool usable(SlotId slot, Time now) const { return usable_by(slot, now, now); }
  bool usable_by(SlotId slot, Time when, Time now) const;

  std::vector<SlotId> slots_;
  std::map<SlotId, Quarantine> quarantines_;
  std::map<SlotId, Trouble> troubles_;
  std::map<SlotId, Trouble> left_out_;
  std::set<SlotId> retired_;
  std::map<WorkerId, Worker> workers_;
  std::map<SlotId, WorkerId> in_slot_;  // the same, looked up the other way
  WorkerId last_;
};

}  // namespace elasticrun::job
