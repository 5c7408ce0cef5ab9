// The course of the program in membership.hpp: its workers begin a call of train, end it, leave by
// themselves, or are all dismissed.
#include <algorithm>
#include <utility>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::hear(WorkerId worker, const wire::Ready& ready, Time now) {
  Peer& peer = peers_.at(worker);
  const bool entered_without =
      peer.train.call == ready.train.call && peer.train.samples == 0 && ready.train.batch > 0;
  if (ready.train.batch > 0) named_call_ = std::max(named_call_, ready.train.call);
  training_.insert(worker);
  done_.erase(worker);
  peer.train = ready.train;
  if (!is_member(worker)) outbox_.push_back(BecameReady{worker});
  if (is_member(worker) && running_ && incomplete_ && quiet()) {
    start_abort("a worker left between two calls of train", now);
    maybe_finish_abort(now);
  }
  plan_outdated_ = plan_outdated_ || (may_step(worker) && entered_without &&
                                      planned_call() < ready.train.call && !aborting_);
  plan_again_if_due(now);
}

// A world that was planned without its batch forms again, when it is whole: a member that has not
// entered it yet is well. Steps that are under way are made again.
void Membership::plan_again_if_due(Time now) {
  if (!plan_outdated_ || !running_ || aborting_ || (forming_ && forming_->going)) return;
  start_abort("the program has named its batch", now);
  maybe_finish_abort(now);
}

void Membership::hear(WorkerId worker, const wire::Done& done, Time) {
  if (aborting_) return;  // sent before the Abort arrived; it is sent again in the next world
  // From a newcomer that got the state of a call which the world has finished.
  if (done.call <= released_call_) {
    training_.erase(worker);
    return send({worker}, wire::Release{done.call});
  }
  done_[worker] = done.call;
  maybe_release();
}

// train returns on no member before the last step is committed on all of them: until then a member
// that has committed it may be the only source of it.
void Membership::maybe_release() {
  if (!running_ || aborting_) return;
  // Cheap test first: the members are gone through only when enough of them have sent Done.
  if (rank_table_.empty() || done_.size() < rank_table_.size()) return;
  const auto members = rank_table_.order();
  const auto call_of = [&](WorkerId worker) {
    const auto found = done_.find(worker);
    return found == done_.end() ? 0 : found->second;
  };
  const std::int64_t call = call_of(members.front());
  const auto other = [&](WorkerId worker) { return call_of(worker) != call; };
  if (call == 0 || std::ranges::any_of(members, other)) return;
  if (forming_) {
    // Each member sends Entered before Done, so without an Entered no member has switched or ever
    // will.
    if (!forming_->entered.empty()) return;
    cancel("training is over");
  }
  released_call_ = call;
  for (const WorkerId worker : members) training_.erase(worker);
  done_.clear();
  outbox_.push_back(Trained{call, no_state});
  send(members, wire::Release{call});
  dismiss_leavers("training is over");
}

void Membership::hear(WorkerId worker, const wire::Leave& leave, Time now) {
  outbox_.push_back(WorkerLeft{worker, leave.reason, is_training(worker)});
  left_.push_back(worker);
  lose(WorkerGone{worker, "left by itself", now}, now, &leave);
}

void Membership::on(const Dissolve& dissolve, Time) {
  std::vector<WorkerId> all;
  for (auto& [worker, peer] : peers_)
    if (!std::exchange(peer.left, true)) all.push_back(worker);
  training_.clear();
  leaving_.clear();
  rank_table_ = {};
  running_.reset();
  forming_.reset();
  aborting_.reset();
  transfer_.end();
  outbox_.push_back(Dismissed{all});
  send(std::move(all), wire::Dismiss{dissolve.reason});
}

}  // namespace elasticrun::rendezvous
