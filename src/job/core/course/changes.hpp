// The planned changes of a job's world: one at a time, each with a number and a reason. After a
// refused change there is a pause, twice as long each time in a row.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "rendezvous/membership.hpp"

namespace elasticrun::job::course {

class Changes {
 public:
  // Why the size, or the plan, is about to change: the reason of the next change.
  void because(std::string why) { why_ = std::move(why); }
  const std::string& why() const { return why_; }

  bool under_way() const { return pending_.has_value(); }
  bool may_begin(Time now) const { return !pending_ && now >= not_before_; }
  // When the pause ends; never: there is no pause.
  Time wake_at(Time now) const { return not_before_ > now ? not_before_ : never; }

  // Gives the change its number, and its reason: `otherwise` if because() gave none.
  rendezvous::Change begin(rendezvous::Change change, const std::string& otherwise) {
    last_ = change.id = last_.next();
    change.reason = why_.empty() ? otherwise : std::exchange(why_, {});
    pending_ = change.id;
    return change;
  }
  // A change has ended. False: it is not the one under way.
  bool ended(ChangeId id, rendezvous::ChangeEnded::How how, Time now) {
    using enum rendezvous::ChangeEnded::How;
    if (pending_ != id) return false;
    pending_.reset();
    if (how == done) refused_ = 0;
    if (how == refused)
      not_before_ = now + std::chrono::milliseconds(100 << std::min(refused_++, 6));
    return true;
  }

 private:
  std::string why_;
  std::optional<ChangeId> pending_;
  ChangeId last_;
  int refused_ = 0;  // changes in a row
  Time not_before_{};
};

}  // namespace elasticrun::job::course
