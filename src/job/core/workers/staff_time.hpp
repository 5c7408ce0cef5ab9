// When the job looks at its slots and workers: soon after an event that concerns them, but in a
// large job not after each such event.
//
// A look takes time for every slot. When a thousand hosts come up, or a thousand newcomers get
// ready, one after the other, a look after each would take the product of events and slots. So in a
// large job looks have a distance that grows with the number of slots, and one look deals with all
// that has happened since the one before.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/time.hpp"

namespace elasticrun::job::workers {

class StaffTime {
 public:
  // Something has happened that concerns slots or workers.
  void concerns(Time now) {
    again(now);
    members_ = Members::may_move;
  }
  // Looks again at that time, because something will be different then.
  void again(Time at) { at_ = std::min(at_, std::max(at, not_before_)); }
  // The look has found no worker that should join or leave.
  void nobody_moves() { members_ = Members::at_rest; }
  bool due(Time now) const { return now >= at_; }
  // All members have sent their samples. No worker joins or leaves because of that, but where none
  // does anyway, another plan for the same members may be better.
  void round_is_whole() {
    if (members_ == Members::at_rest) members_ = Members::reported;
  }
  // True, once: such a round of samples came while the members were at rest.
  bool take_round() {
    if (members_ != Members::reported) return false;
    members_ = Members::at_rest;
    return true;
  }
  // A look at that many slots begins; it covers all that has happened up to now.
  void looked(std::size_t slots, Time now) {
    at_ = never;
    members_ = Members::may_move;
    not_before_ = now + distance(slots);
  }
  Time wake_at() const { return members_ == Members::reported ? at_once : at_; }

  // The least time from one look to the next: zero up to some hundred slots, a tenth of a second at
  // ten thousand, a second at a hundred thousand.
  static Duration distance(std::size_t slots) {
    constexpr std::size_t at_once_max = 256;
    if (slots <= at_once_max) return Duration::zero();
    return std::chrono::microseconds(10) * static_cast<std::int64_t>(slots - at_once_max);
  }

 private:
  enum class Members { may_move, at_rest, reported };

  Time at_ = never;
  Time not_before_{};
  Members members_ = Members::may_move;  // as the last look found them, or what came since
};

}  // namespace elasticrun::job::workers
