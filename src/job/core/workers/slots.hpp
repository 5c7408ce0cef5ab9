// The slots of a job: which ones there are, which ones are left alone for a while, and why.
//
// Three problems of a slot have three pauses: workers that fail there, a worker that is slower than
// the others, a worker with which no world can be formed. A pause grows each time its problem comes
// again.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/core/terms/slot.hpp"

namespace elasticrun::job::workers {

class Slots {
 public:
  // Sets the slots that may be used, in rank order.
  void set(std::vector<SlotId> slots);
  const std::vector<SlotId>& all() const { return slots_; }
  bool contains(SlotId slot) const { return std::ranges::count(slots_, slot) > 0; }
  // This slot may not be used any more.
  void drop(SlotId slot) { std::erase(slots_, slot); }

  // A worker failed there. The first failure causes no pause; from then on the pause doubles, up to
  // five minutes. A worker that was lost with its host, or not ready in time, counts twice.
  Duration failed(SlotId slot, Time now);
  // Its host has failed, which causes a pause from the first time on.
  void host_failed(SlotId slot, Time now);
  // A worker there has committed a step: forgets the slot's failures, and that it was left out.
  // True: there was something to forget.
  bool forget_failures(SlotId slot);
  // Its worker is slower than the others: it is replaced if another slot is free, and no other one
  // is started there for a while, twice as long each time. Returns that time.
  Duration quarantine(SlotId slot, Time now);
  bool quarantined(SlotId slot, Time now) const;
  // No world could be formed with its worker, though nothing else is wrong with it: neither it nor
  // another one there is tried for a while, twice as long each time. Returns that time.
  Duration leave_out(SlotId slot, Time now);
  bool left_out(SlotId slot, Time now) const;
  // Quarantined or left out: its worker is the last choice.
  bool avoided(SlotId slot, Time now) const {
    return quarantined(slot, now) || left_out(slot, now);
  }
  // Its worker left by itself and is not replaced.
  void retire(SlotId slot) { retired_.insert(slot); }
  bool retired(SlotId slot) const { return retired_.contains(slot); }
  int retired() const { return static_cast<int>(retired_.size()); }
  // Its worker has failed after it left, and is replaced.
  void unretire(SlotId slot) { retired_.erase(slot); }
  // All workers are started again.
  void unretire() { retired_.clear(); }
  // True: no slot will ever have a worker again. A slot in a pause will have one, and a job without
  // slots may get some, so these do not count.
  bool all_retired() const;

  // A worker may start there now; usable_soon: within a minute.
  bool usable(SlotId slot, Time now) const { return usable_by(slot, now, now); }
  bool usable_soon(SlotId slot, Time now) const {
    return usable_by(slot, now + std::chrono::minutes(1), now);
  }
  // When the next slot comes out of its pause.
  Time wake_at(Time now) const;

 private:
  struct Pause {
    int times = 0;  // in a row
    Time until{};
  };
  bool usable_by(SlotId slot, Time when, Time now) const;

  std::vector<SlotId> slots_;
  std::map<SlotId, Pause> failures_;
  std::map<SlotId, Pause> quarantines_;
  std::map<SlotId, Pause> left_out_;
  std::set<SlotId> retired_;
};

}  // namespace elasticrun::job::workers
