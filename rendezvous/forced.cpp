// The forced half of membership.hpp: somebody died, hangs, or a group broke.
#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::on(const WorkerGone& gone, Time now) {
  if (aborting_) note_dead(gone);
  const auto peer = peers_.find(gone.worker);
  if (peer == peers_.end()) return aborting_ ? maybe_finish_abort(now) : void();
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
    if (was_training || anybody_training()) {
      start_abort(reason, now);
      note_dead(gone);
      maybe_finish_abort(now);
    } else {
      incomplete_ = true;
    }
  } else if (was_member && !forming_ && state_is_lost()) {
    outbox_.push_back(StateLost{reason});  // it waited for more workers, and was the last
  }
}

void Membership::hear(WorkerId worker, const wire::Broken& broken, Time now) {
  const bool present = running_ && running_->world.generation == broken.generation;
  const bool coming = forming_ && forming_->world.generation == broken.generation;
  if (aborting_ || (!present && !coming)) return;
  start_abort(fmt::format("worker {}: {}", worker.value, broken.reason), now);
  maybe_finish_abort(now);
}

// Closes every group up to the newest generation and asks all who may hold state for their step.
// maybe_finish_abort follows: it may be that nobody is there to ask.
void Membership::start_abort(const std::string& reason, Time now) {
  std::set<WorkerId> asked(leaving_.begin(), leaving_.end());
  for (const WorkerId worker : seats_.order()) asked.insert(worker);
  if (forming_) {
    for (const WorkerId worker : participants()) asked.insert(worker);
    if (forming_->change) outbox_.push_back(ChangeEnded{*forming_->change, false, reason});
  }
  std::erase_if(asked, [&](WorkerId w) { return !peers_.contains(w); });
  aborting_ = Aborting{.up_to = last_, .deadline = now + options_.abort_timeout};
  if (running_) suspect(running_->world);
  if (forming_ && forming_->going) suspect(forming_->world);
  forming_.reset();
  running_.reset();
  abort_reason_ = reason;
  for (auto& [id, peer] : peers_) peer.done_call = 0;
  outbox_.push_back(WorldBroken{last_, reason});
  for (const WorkerId worker : asked) send(worker, wire::Abort{last_, reason});
  aborting_->waiting = std::move(asked);
}

void Membership::suspect(const wire::World& world) {
  Suspect& suspect = aborting_->suspects.emplace_back();
  for (const auto& member : world.members) suspect.dead_by[member.worker] = never;
}

void Membership::note_dead(const WorkerGone& gone) {
  for (Suspect& suspect : aborting_->suspects)
    if (const auto member = suspect.dead_by.find(gone.worker); member != suspect.dead_by.end())
      member->second = std::min(member->second, gone.dead_by);
}

// Until then a world that nobody has answered for may still be stepping.
Time Membership::safe_at() const {
  Time at{};
  for (const Suspect& suspect : aborting_->suspects)
    if (!suspect.closed)
      for (const auto& [worker, dead_by] : suspect.dead_by) at = std::max(at, dead_by);
  return at;
}

void Membership::hear(WorkerId worker, const wire::Answer& answer, Time now) {
  if (!aborting_ || answer.generation != aborting_->up_to) return;
  peers_.at(worker).committed = answer.committed;
  newest_seen_ = std::max(newest_seen_, answer.committed);
  for (Suspect& suspect : aborting_->suspects) suspect.closed |= suspect.dead_by.contains(worker);
  aborting_->waiting.erase(worker);
  maybe_finish_abort(now);
}

void Membership::maybe_finish_abort(Time now) {
  if (!aborting_ || !aborting_->waiting.empty()) return;
  for (const Suspect& suspect : aborting_->suspects) closed_by_answer_ &= suspect.closed;
  if (now < safe_at() && !state_is_lost()) return;
  aborting_.reset();
  form_from_survivors(now);
}

// Asked while no world runs; leavers and newcomers may be the ones who have it. Members of the
// first world that survived with no state prove that it never completed a step (it cannot without
// them), so fresh weights are as good; nobody at all proves nothing.
bool Membership::state_is_lost() const {
  const bool held = std::ranges::any_of(peers_, [](const auto& entry) {
    return !entry.second.left && entry.second.committed != no_state;
  });
  return !held && state_born_ && !(closed_by_answer_ && newest_seen_ <= Step(0));
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

  if (state_is_lost()) {
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
