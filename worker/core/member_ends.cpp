// The part of member.hpp that ends a world, by an Abort, or a membership, by a leave or a Dismiss.
#include <utility>

#include "worker/core/member.hpp"

namespace elasticrun::worker::core {

void Member::on(const wire::Abort& order) {
  if (order.generation == aborted_) close_groups();
  if (order.generation <= aborted_) return;
  const bool in_step = phase_ == Phase::compute || phase_ == Phase::apply;
  if (in_step && !has_reached(order))
    abort_after_ = order;
  else
    abort(order);
}

// `order` may be the one in abort_after_, so it is read before that is reset. If a member has left,
// others may still need data of this worker, so its groups stay open until all have answered.
void Member::abort(const wire::Abort& order) {
  aborted_ = order.generation;
  groups_open_ = true;
  const bool computes = phase_ == Phase::compute && collectives_ == 0;  // a step after `after`
  if (order.after == no_state || computes) close_groups();
  abort_after_.reset();
  if (next_ && next_->world.generation <= aborted_) next_.reset();
  owes_answer_ = true;
  if (phase_ != Phase::apply && phase_ != Phase::swap) answer();
}

void Member::close_groups() {
  if (std::exchange(groups_open_, false)) outbox_.push_back(AbortGroups{aborted_});
}

bool Member::has_reached(const wire::Abort& order) const {
  return committed_ > order.after ||
         (committed_ == order.after && collectives_ >= order.collectives);
}

bool Member::abort_if_reached() {
  if (!abort_after_ || !has_reached(*abort_after_)) return false;
  abort(*abort_after_);
  return true;
}

void Member::collective_ended() {
  if (phase_ != Phase::compute) return;  // an Abort came before
  ++collectives_;
  abort_if_reached();
}

void Member::answer() {
  owes_answer_ = false;
  agreed_ = false;
  save_now_.reset();  // it is asked for again in the next world
  if (world_ && world_->world.generation <= aborted_) world_.reset();
  if (phase_ != Phase::outside) phase_ = Phase::waiting;
  send(wire::Answer{aborted_, committed_, std::exchange(held_up_, {})});
  dismiss_if_due();
}

// ---------------------------------------------------------------- out of the world for good

// The new world may make a step before a slow leaving worker has applied the last step of the old
// world. All ranks have reduced that step, so nothing holds it up, and an epoch may end with it: it
// is not cut short.
void Member::on(const wire::Dismiss& dismiss) {
  const bool stepping = phase_ == Phase::compute || phase_ == Phase::apply;
  if (stepping && next_ && next_->go && next_->rank == Rank(-1))
    due_ = dismiss.reason;
  else
    evict(dismiss.reason);
}

void Member::dismiss_if_due() {
  if (due_) evict(*std::exchange(due_, std::nullopt));
}

void Member::evict(const std::string& reason) {
  evicted_ = true;
  leaves_ = false;
  dismissed_ = reason;
  outbox_.push_back(AbortGroups{Generation(~0ULL)});
}

void Member::leave(const std::string& reason) {
  if (evicted_) return;
  send(wire::Leave{reason, committed_, collectives_});
  leaves_ = may_be_needed();
  evicted_ = true;
  dismissed_ = reason;
  if (!leaves_) outbox_.push_back(AbortGroups{Generation(~0ULL)});
}

// True: a peer may still be in the last step or collective, and get data from this worker.
bool Member::may_be_needed() const {
  if (groups_open_) return true;
  const bool released = call_ > 0 && released_call_ >= call_;
  const bool stepping = phase_ == Phase::between || phase_ == Phase::compute;
  return stepping && !released && in_world() && !world_->broken && world_->world.members.size() > 1;
}

void Member::fail(const std::string& reason) {
  if (!evicted_) evict(reason);
}

}  // namespace elasticrun::worker::core
