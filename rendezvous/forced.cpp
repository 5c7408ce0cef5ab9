// Forced changes of membership.hpp: a worker died or hangs, or a group broke.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rendezvous/membership.hpp"

namespace elasticrun::rendezvous {

void Membership::on(const WorkerGone& gone, Time now) { lose(gone, now); }

// `left`: its last words, if it has left by itself.
void Membership::lose(const WorkerGone& gone, Time now, const wire::Leave* left) {
  if (aborting_) note_dead(gone);
  const auto peer = peers_.find(gone.worker);
  if (peer == peers_.end()) {
    if (aborting_) maybe_finish_abort(now);
    return;
  }
  const bool was_training = is_training(gone.worker);
  const bool was_member = is_member(gone.worker);
  const bool was_forming = in_forming(gone.worker);
  const bool had_state = peer->second.committed != no_state;
  if (left && entered_) entered_->erase(gone.worker);
  done_.erase(gone.worker);
  training_.erase(gone.worker);
  peers_.erase(peer);
  rank_table_.vacate(gone.worker);
  leaving_.erase(gone.worker);
  const std::string reason = fmt::format("worker {} {}", gone.worker.value, gone.reason);

  if (aborting_) {
    aborting_->somebody_died = true;
    // The first report was only of a closed connection; this death is why it was closed.
    const bool asked = aborting_->waiting.contains(gone.worker);
    if (asked && std::exchange(aborting_->hearsay, false)) abort_reason_ = reason;
    aborting_->waiting.erase(gone.worker);
    maybe_finish_abort(now);
  } else if (was_forming && !was_member && !forming_->going && !forming_->at_once) {
    cancel(reason);  // a candidate: the running world is not affected
  } else if (was_forming || (was_member && running_)) {
    // After the last step no group is needed until a member trains again.
    if (was_training || anybody_training()) {
      start_abort(reason, now, left);
      aborting_->somebody_died = true;
      note_dead(gone);
      maybe_finish_abort(now);
    } else {
      incomplete_ = true;
    }
  } else if ((was_member || (had_state && !running_)) && !forming_ && state_is_lost()) {
    // The worker waited for more workers, or had been left out, and was the last with the state.
    abort_reason_ = reason;
    outbox_.push_back(StateLost{reason});
  }
}

void Membership::hear(WorkerId worker, const wire::Broken& broken, Time now) {
  note(worker, broken.generation, broken.complaints);
  const bool present = running_ && running_->world.generation == broken.generation;
  const bool coming = forming_ && forming_->world.generation == broken.generation;
  if (aborting_ || (!present && !coming)) return;
  if (coming) count_failure(now);
  const bool stepless = present && !running_->committed;
  const auto& complaints = broken.complaints;
  const bool hung_up = !complaints.empty() && complaints.front().hung_up;
  start_abort(hung_up ? fmt::format("worker {} hung up, worker {} says",
                                    complaints.front().about.value, worker.value)
                      : fmt::format("worker {}: {}", worker.value, broken.reason),
              now);
  aborting_->stepless = stepless;
  aborting_->hearsay = hung_up;
  aborting_->messenger = worker;
  maybe_finish_abort(now);
}

// A link that loses what is sent breaks no connection, so no member has complained yet: the Abort
// asks all of them whom they could not reach. A world that has stepped before may form again over
// the bad link; then it stands still a second time.
void Membership::on(const Stuck& stuck, Time now) {
  const bool present = running_ && running_->world.generation == stuck.generation;
  const bool coming = forming_ && forming_->world.generation == stuck.generation;
  if (aborting_ || (!present && !coming)) return;
  count_failure(now);
  start_abort(fmt::format("worker {}: {}", stuck.worker.value, stuck.reason), now);
  aborting_->stalled = true;
  maybe_finish_abort(now);
}

// Closes every group up to the newest generation and asks all workers that may hold state for their
// step. The caller calls maybe_finish_abort next, since there may be no worker left to ask.
void Membership::start_abort(const std::string& reason, Time now, const wire::Leave* left) {
  std::set<WorkerId> asked = leaving_;
  for (const WorkerId worker : rank_table_.order()) asked.insert(worker);
  if (forming_) {
    for (const WorkerId worker : participants()) asked.insert(worker);
    if (forming_->change)
      outbox_.push_back(ChangeEnded{*forming_->change, ChangeEnded::How::overtaken, reason});
  }
  std::erase_if(asked, [&](WorkerId w) { return !peers_.contains(w); });
  aborting_ = Aborting{
      .up_to = last_, .deadline = now + options_.abort_timeout, .form_at = now + form_pause()};
  if (forming_) {
    aborting_->newcomers = newcomers_of(*forming_);
    aborting_->leavers = forming_->leavers;
  } else if (running_ && !running_->committed) {
    aborting_->newcomers = newcomers_of(running_->world);
  }
  if (running_) add_open_world(running_->world);
  if (forming_ && forming_->going) add_open_world(forming_->world);
  forming_.reset();
  running_.reset();
  transfer_.end();
  abort_reason_ = reason;
  done_.clear();
  outbox_.push_back(WorldBroken{last_, reason});
  wire::Abort abort{last_, reason};
  if (left) {
    abort.after = left->step;
    abort.collectives = left->collectives;
    aborting_->ends_step = true;
    aborting_->giving = {asked.begin(), asked.end()};
  }
  send({asked.begin(), asked.end()}, std::move(abort));
  aborting_->waiting = std::move(asked);
}

void Membership::add_open_world(const wire::World& world) {
  OpenWorld& open = aborting_->open_worlds.emplace_back();
  for (const auto& member : world.members) open.dead_by[member.worker] = never;
}

void Membership::note_dead(const WorkerGone& gone) {
  for (OpenWorld& open : aborting_->open_worlds)
    if (const auto member = open.dead_by.find(gone.worker); member != open.dead_by.end())
      member->second = std::min(member->second, gone.dead_by);
}

// Until this time a world of which no member has answered may still be stepping.
Time Membership::safe_at() const {
  Time at{};
  for (const OpenWorld& open : aborting_->open_worlds)
    if (!open.closed)
      for (const auto& [worker, dead_by] : open.dead_by) at = std::max(at, dead_by);
  return at;
}

void Membership::hear(WorkerId worker, const wire::Answer& answer, Time now) {
  if (!aborting_ || answer.generation != aborting_->up_to) return;
  peers_.at(worker).committed = answer.committed;
  // Which worker waits for which says nothing where the group was broken for another reason.
  if (aborting_->stalled) note(worker, answer.generation, answer.complaints);
  newest_seen_ = std::max(newest_seen_, answer.committed);
  for (OpenWorld& open : aborting_->open_worlds) open.closed |= open.dead_by.contains(worker);
  aborting_->waiting.erase(worker);
  maybe_finish_abort(now);
}

void Membership::maybe_finish_abort(Time now) {
  if (!aborting_ || !aborting_->waiting.empty()) return;
  for (const OpenWorld& open : aborting_->open_worlds) closed_by_answer_ &= open.closed;
  if (now < std::max(safe_at(), aborting_->form_at)) {
    if (state_is_lost()) outbox_.push_back(StateLost{abort_reason_});
    return;
  }
  const Aborting aborted = *std::exchange(aborting_, std::nullopt);
  send(aborted.giving, wire::Abort{aborted.up_to, abort_reason_});
  form_from_survivors(aborted, now);
}

bool Membership::state_is_held() const {
  if (running_ || aborting_ || (forming_ && forming_->going)) return true;
  return some_peer_has_state();
}

std::optional<WorkerId> Membership::idle_holder() const {
  if (running_ || aborting_ || forming_) return std::nullopt;
  std::optional<WorkerId> holder;
  for (const auto& [worker, peer] : peers_) {
    const bool holds = !peer.left && peer.committed != no_state && training_.contains(worker);
    if (holds && (!holder || peer.committed > peers_.at(*holder).committed)) holder = worker;
  }
  return holder;
}

bool Membership::some_peer_has_state() const {
  return std::ranges::any_of(peers_, [](const auto& entry) {
    return !entry.second.left && entry.second.committed != no_state;
  });
}

// Asked only while no world runs. Any worker may hold the state, also a leaver or a newcomer. If
// members of the first world have survived without state, it never completed a step (it cannot
// without them), so fresh weights are as good. If no member has survived, this is not known.
// With a save the state is never lost, only the steps since then.
bool Membership::state_is_lost() const {
  if (!restore_.from.empty()) return false;
  return !some_peer_has_state() && state_born_ && !(closed_by_answer_ && newest_seen_ <= StepId(0));
}

// The workers that go on. Survivors keep their order, and reserves fill the world up to the wanted
// size. A worker with a newer state than all survivors is in it in any case: a leaver, or a
// newcomer that has stepped in the new world. A survivor without that state may then have to make
// room; one that was about to leave goes before others.
RankTable Membership::survivors(const Aborting& aborted, const std::set<WorkerId>& left_out) const {
  RankTable rank_table = rank_table_;
  const auto committed = [&](WorkerId worker) { return peers_.at(worker).committed; };
  std::vector<WorkerId> order = rank_table.order();
  const auto limit = std::max<std::size_t>(static_cast<std::size_t>(wanted_.size), order.size());
  StepId newest = no_state;
  for (const WorkerId worker : order) newest = std::max(newest, committed(worker));
  for (const auto& [worker, peer] : peers_)
    if (is_training(worker) && peer.committed > newest) {
      newest = peer.committed;
      rank_table.add(worker);
    }
  std::erase_if(order, [&](WorkerId worker) { return committed(worker) == newest; });
  const std::set<WorkerId> leavers(aborted.leavers.begin(), aborted.leavers.end());
  std::ranges::stable_partition(order, [&](WorkerId worker) { return !leavers.contains(worker); });
  for (; !order.empty() && rank_table.size() > limit; order.pop_back())
    rank_table.remove(order.back());
  fill_up(rank_table, left_out);
  return rank_table;
}

void Membership::fill_up(RankTable& rank_table, const std::set<WorkerId>& left_out) const {
  for (const WorkerId worker : wanted_.reserves)
    if (is_training(worker) && !left_out.contains(worker) && !rank_table.contains(worker) &&
        rank_table.size() < static_cast<std::size_t>(wanted_.size))
      rank_table.add(worker);
}

void Membership::form_from_survivors(const Aborting& aborted, Time now) {
  const std::set<WorkerId> left_out = settle_complaints(aborted, now);
  RankTable rank_table = survivors(aborted, left_out);
  std::erase_if(leaving_, [&](WorkerId w) { return rank_table.contains(w); });
  dismiss_leavers("left the world by decision");
  rank_table_ = std::move(rank_table);

  // If all have left, the program has ended: no worker begins again from a save.
  const bool left = all_left() && !some_peer_has_state();
  if (left || state_is_lost())
    outbox_.push_back(StateLost{abort_reason_, left});
  else
    form_or_wait(now);
}

void Membership::form_or_wait(Time now) {
  const auto size = static_cast<int>(rank_table_.size());
  if (size < wanted_.minimum)
    outbox_.push_back(BelowMinimum{size, wanted_.minimum});
  else
    form(rank_table_, {}, std::nullopt, abort_reason_, now);
}

// Workers that waited for a minimum which cannot be reached form a world when it becomes smaller.
void Membership::on(const Wanted& wanted, Time now) {
  const bool smaller = wanted.minimum < wanted_.minimum;
  wanted_ = wanted;
  const auto size = static_cast<int>(rank_table_.size());
  const bool enough = size > 0 && size >= wanted.minimum;
  if (smaller && enough && !running_ && quiet() && !state_is_lost()) form_or_wait(now);
}

void Membership::on(const Restore& restore, Time now) {
  const bool lost = !running_ && quiet() && state_is_lost();
  restore_ = restore;
  if (!lost || restore.from.empty()) return;
  fill_up(rank_table_, {});  // with those that became ready while the save was made whole
  form_or_wait(now);
}

}  // namespace elasticrun::rendezvous
