// The slots of a job: which there are, and which are left alone for a while, and why.
//
// Three troubles of a slot have three pauses: workers that fail there, a worker that is slower than
// others, a worker with which no world can be formed. Each grows when the same happens again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::workers {

class Slots {
 public:
  // Those that may be used, in rank order.
  void set(std::vector<job::SlotId> slots);
  const std::vector<job::SlotId>& all() const { return slots_; }
  // One of them may not be used any more.
  void drop(job::SlotId slot) { std::erase(slots_, slot); }

  // A worker failed there. The first failure costs nothing; then the pause doubles, up to five
  // minutes. A worker that is lost with its host, or did not get ready in time, counts twice.
  void failed(job::SlotId slot, Time now);
  // Its host has failed: there is a pause from the first time on.
  void host_failed(job::SlotId slot, Time now);
  // A worker there has committed a step: all is forgiven. True: there was something to forgive.
  bool works(job::SlotId slot);
  // Its worker is slower than others: it is replaced where another slot is free, and no other is
  // started there for a while, twice as long each time. Says for how long.
  Duration quarantine(job::SlotId slot, Time now);
  bool quarantined(job::SlotId slot, Time now) const;
  // No world could be formed with its worker, which is well by itself: neither it nor another one
  // there is tried for a while, twice as long each time. Says for how long.
  Duration leave_out(job::SlotId slot, Time now);
  bool left_out(job::SlotId slot, Time now) const;
  // Slow, or left out: its worker is the last choice.
  bool avoided(job::SlotId slot, Time now) const {
    return quarantined(slot, now) || left_out(slot, now);
  }
  // Its worker left by itself: nobody takes its place.
  void retire(job::SlotId slot) { retired_.insert(slot); }
  // No slot will ever have a worker again; one in its pause will, and where there is none at
  // present others may come.
  bool all_retired() const;

  // A worker may start there now; within a minute.
  bool usable(job::SlotId slot, Time now) const { return usable_by(slot, now, now); }
  bool usable_soon(job::SlotId slot, Time now) const {
    return usable_by(slot, now + std::chrono::minutes(1), now);
  }
  // When the next slot comes out of its pause.
  Time wake_at(Time now) const;

 private:
  struct Pause {
    int times = 0;  // in a row
    Time until{};
  };
  bool usable_by(job::SlotId slot, Time when, Time now) const;

  std::vector<job::SlotId> slots_;
  std::map<job::SlotId, Pause> failures_;
  std::map<job::SlotId, Pause> quarantines_;
  std::map<job::SlotId, Pause> left_out_;
  std::set<job::SlotId> retired_;
};

}  // namespace elasticrun::job::workers
