// When the slots and workers of a job are looked at: soon after something that concerns them, and
// in a large job not after each such thing.
//
// A look costs a time for every slot. When a thousand hosts come up, or a thousand newcomers get
// ready, one after the other, a look after each would cost their product. So in a large job looks
// have a distance that grows with it, and what happens meanwhile is dealt with together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/time.hpp"

namespace elasticrun::job::workers {

class StaffTime {
 public:
  // Something has happened.
  void concerns(Time now) {
    again(now);
    members_ = Members::may_move;
  }
  // Something will be different then.
  void again(Time at) { at_ = std::min(at_, std::max(at, not_before_)); }
  // The look has found that nobody comes or goes.
  void nobody_moves() { members_ = Members::at_rest; }
  bool due(Time now) const { return now >= at_; }
  // All members have reported: nobody comes or goes for that, but where they are at rest another
  // plan for them may be better.
  void round_is_whole() {
    if (members_ == Members::at_rest) members_ = Members::reported;
  }
  bool take_round() {
    if (members_ != Members::reported) return false;
    members_ = Members::at_rest;
    return true;
  }
  // The look begins that answers for all that has happened; so many slots there are.
  void looked(std::size_t slots, Time now) {
    at_ = never;
    members_ = Members::may_move;
    not_before_ = now + distance(slots);
  }
  Time wake_at() const { return members_ == Members::reported ? at_once : at_; }

  // From one look to the next: nothing up to some hundred slots, a tenth of a second at ten
  // thousand, a second at a hundred thousand.
  static Duration distance(std::size_t slots) {
    constexpr std::size_t at_once_max = 256;
    if (slots <= at_once_max) return Duration::zero();
    return std::chrono::microseconds(10) * static_cast<std::int64_t>(slots - at_once_max);
  }

 private:
  enum class Members { may_move, at_rest, reported };

  Time at_ = never;
  Time not_before_{};
  Members members_ = Members::may_move;  // as the last look has found them, and since
};

}  // namespace elasticrun::job::workers
