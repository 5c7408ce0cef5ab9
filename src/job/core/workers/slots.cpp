// See slots.hpp.
#include "job/core/workers/slots.hpp"

#include <algorithm>

namespace elasticrun::job::workers {
namespace {

// 1 s, 2 s, 4 s, ... 5 minutes; `times` is the number of pauses before this one.
Duration pause_after(int times) {
  return std::min<Duration>(std::chrono::seconds(1 << std::min(times, 10)),
                            std::chrono::minutes(5));
}

template <class Pauses>
bool pauses(const Pauses& pauses, SlotId slot, Time when) {
  const auto found = pauses.find(slot);
  return found != pauses.end() && when < found->second.until;
}

}  // namespace

void Slots::set(std::vector<SlotId> slots) { slots_ = std::move(slots); }

Duration Slots::failed(SlotId slot, Time now) {
  Pause& pause = failures_[slot];
  const int before = pause.times++;
  const Duration time = before == 0 ? Duration::zero() : pause_after(before - 1);
  pause.until = now + time;
  return time;
}

void Slots::host_failed(SlotId slot, Time now) {
  Pause& pause = failures_[slot];
  pause.times = std::max(pause.times, 1);
  failed(slot, now);
}

bool Slots::forget_failures(SlotId slot) {
  return failures_.erase(slot) + left_out_.erase(slot) > 0;
}

Duration Slots::quarantine(SlotId slot, Time now) {
  Pause& one = quarantines_[slot];
  const int doublings = std::min(one.times++, 5);
  const Duration time = std::chrono::minutes(10) * (1 << doublings);
  one.until = now + time;
  return time;
}

bool Slots::quarantined(SlotId slot, Time now) const { return pauses(quarantines_, slot, now); }

Duration Slots::leave_out(SlotId slot, Time now) {
  Pause& one = left_out_[slot];
  const Duration time = pause_after(one.times++);
  one.until = now + time;
  return time;
}

bool Slots::left_out(SlotId slot, Time now) const { return pauses(left_out_, slot, now); }

bool Slots::all_retired() const {
  return !slots_.empty() &&
         std::ranges::all_of(slots_, [&](SlotId slot) { return retired_.contains(slot); });
}

bool Slots::usable_by(SlotId slot, Time when, Time now) const {
  return !retired_.contains(slot) && !avoided(slot, now) && !pauses(failures_, slot, when);
}

Time Slots::wake_at(Time now) const {
  Time at = never;
  for (const auto* pauses : {&failures_, &quarantines_, &left_out_})
    for (const auto& [slot, pause] : *pauses)
      if (pause.until > now) at = std::min(at, pause.until);
  return at;
}

}  // namespace elasticrun::job::workers
