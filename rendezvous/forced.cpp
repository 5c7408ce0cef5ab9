// The forced half of membership.hpp: somebody died, hangs, or a group broke.
#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::on(const WorkerGone& gone, Time now) {
  const auto peer = peers_.find(gone.worker);
  if (peer == peers_.end()) return;
  const bool was_training = is_training(gone.worker);
  const bool was_member = is_member(gone.worker);
  const bool was_forming = in_forming(gone.worker);
  peers_.erase(peer);
  seats_.vacate(gone.worker);
  std::erase(leaving_, gone.worker);
  const std::string reason = fmt::format("worker {} {}", gone.worker.value, gone.reason);

  if (aborting_) {
    aborting_->waiting.erase(gone.worker);
    maybe_finish_abort(now);
  } else if (was_forming && !was_member && !forming_->going && !forming_->at_once) {
    cancel(reason);  // a candidate: the running world need not know
  } else if (was_forming || (was_member && running_)) {
    // After the last step nobody needs a group until somebody trains again.
    if (was_training || anybody_training())
      start_abort(reason, now);
    else
      incomplete_ = true;
  }
}

void Membership::hear(WorkerId worker, const wire::Broken& broken, Time now) {
  const bool present = running_ && running_->world.generation == broken.generation;
  const bool coming = forming_ && forming_->world.generation == broken.generation;
  if (!aborting_ && (present || coming))
    start_abort(fmt::format("worker {}: {}", worker.value, broken.reason), now);
}

// Closes every group up to the newest generation and asks all who may hold state for their step.
void Membership::start_abort(const std::string& reason, Time now) {
  std::set<WorkerId> asked(leaving_.begin(), leaving_.end());
  for (const WorkerId worker : seats_.order()) asked.insert(worker);
  if (forming_) {
    for (const WorkerId worker : participants()) asked.insert(worker);
    if (forming_->change) outbox_.push_back(ChangeEnded{*forming_->change, false, reason});
  }
  std::erase_if(asked, [&](WorkerId w) { return !peers_.contains(w); });
  forming_.reset();
  running_.reset();
  abort_reason_ = reason;
  held_by_survivor_ = false;
  for (auto& [id, peer] : peers_) peer.done_call = 0;
  outbox_.push_back(WorldBroken{last_, reason});
  for (const WorkerId worker : asked) send(worker, wire::Abort{last_, reason});
  aborting_ = Aborting{last_, std::move(asked), now + options_.abort_timeout};
  maybe_finish_abort(now);
}

void Membership::hear(WorkerId worker, const wire::Answer& answer, Time now) {
  if (!aborting_ || answer.generation != aborting_->up_to) return;
  peers_.at(worker).committed = answer.committed;
  newest_seen_ = std::max(newest_seen_, answer.committed);
  if (is_member(worker)) held_by_survivor_ = true;
  aborting_->waiting.erase(worker);
  maybe_finish_abort(now);
}

void Membership::maybe_finish_abort(Time now) {
  if (!aborting_ || !aborting_->waiting.empty()) return;
  aborting_.reset();
  form_from_survivors(now);
}

void Membership::form_from_survivors(Time now) {
  Seats seats = seats_;
  Step newest = no_state;
  for (const WorkerId worker : seats.order())
    newest = std::max(newest, peers_.at(worker).committed);
  // A leaver goes on when it alone has the newest state; else its time has come.
  for (const WorkerId worker : leaving_)
    if (peers_.at(worker).committed > newest) {
      newest = peers_.at(worker).committed;
      seats.add(worker);
    }
  std::erase_if(leaving_, [&](WorkerId w) { return std::ranges::count(seats.order(), w) > 0; });
  dismiss_leavers("left the world by decision");
  // A newcomer that had entered before the abort holds state like any member.
  for (const auto& [worker, peer] : peers_)
    if (peer.training && !peer.left && std::ranges::count(seats.order(), worker) == 0) {
      newest = std::max(newest, peer.committed);
      seats.add(worker);
    }
  seats_ = seats;

  // Members of the first world that survived with no state prove that it never completed a step (it
  // cannot without them), so fresh weights are as good; nobody at all proves nothing.
  if (newest == no_state && state_born_ && !(held_by_survivor_ && newest_seen_ <= Step(0))) {
    outbox_.push_back(StateLost{abort_reason_});
    return;
  }
  const int size = static_cast<int>(seats.order().size());
  if (size < options_.minimum) {
    outbox_.push_back(BelowMinimum{size, options_.minimum});
    return;
  }
  form(std::move(seats), {}, std::nullopt, abort_reason_, now);
}

}  // namespace elasticrun::rendezvous
