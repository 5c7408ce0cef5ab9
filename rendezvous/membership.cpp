// The events and planned changes of membership.hpp. Forced changes are in forced.cpp, and the
// course of the program in training.cpp.
#include "rendezvous/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "wire/limits.hpp"

namespace elasticrun::rendezvous {
namespace {

// The share of prepare_timeout that members get for connecting. They give up before the controller
// gives them up, since they know better which peers they cannot reach.
constexpr double connect_share = 0.8;

}  // namespace

std::vector<Action> Membership::step(const Event& event, Time now) {
  std::visit([&](const auto& e) { on(e, now); }, event);
  if (!aborting_) send(std::exchange(left_, {}), wire::Dismiss{"left by itself"});
  return std::exchange(outbox_, {});
}

Time Membership::wake_at() const {
  if (aborting_)
    return aborting_->waiting.empty() ? std::max(safe_at(), aborting_->form_at)
                                      : aborting_->deadline;
  if (forming_) return forming_->going ? transfer_.deadline() : forming_->deadline;
  return never;
}

bool Membership::is_member(WorkerId worker) const { return rank_table_.contains(worker); }

std::optional<std::int32_t> Membership::rank_of(WorkerId worker) const {
  const auto found = std::ranges::find(went_.members, worker, &wire::Member::worker);
  if (found == went_.members.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - went_.members.begin());
}

bool Membership::may_step(WorkerId worker) const {
  if (forming_ && forming_->going) return rank_of(worker).has_value();
  // A world that broke before all had entered it may have stepped.
  return is_member(worker) || (aborting_ && rank_of(worker));
}

bool Membership::is_leaving(WorkerId worker) const { return leaving_.contains(worker); }

bool Membership::is_training(WorkerId worker) const {
  const auto peer = peers_.find(worker);
  return training_.contains(worker) && peer != peers_.end() && !peer->second.left;
}

bool Membership::anybody_training() const {
  return std::ranges::any_of(training_, [&](WorkerId w) { return is_member(w) && is_training(w); });
}

bool Membership::in_forming(WorkerId worker) const {
  return forming_ &&
         (forming_->ranks.contains(worker) || std::ranges::count(forming_->leavers, worker) > 0);
}

// ---------------------------------------------------------------- local events

void Membership::on(const WorkerUp& up, Time) {
  peers_.try_emplace(up.worker, Peer{.host = up.host, .slot = up.slot});
}

void Membership::on(const WorkerMessage& heard, Time now) {
  const auto peer = peers_.find(heard.from);
  if (peer == peers_.end() && std::holds_alternative<wire::Leave>(heard.message))
    return left_.push_back(heard.from);
  if (peer == peers_.end() || peer->second.left) return;
  std::visit([&](const auto& message) { hear(heard.from, message, now); }, heard.message);
}

void Membership::on(const Change& change, Time now) {
  const auto refuse = [&](std::string why) {
    outbox_.push_back(ChangeEnded{change.id, ChangeEnded::How::refused, std::move(why)});
  };
  if (!quiet()) return refuse("another change is under way");
  if (running_ && !anybody_training()) return refuse("no worker trains");
  if (!running_ && state_is_lost()) return refuse("no worker holds the state");
  RankTable rank_table = rank_table_;
  std::vector<WorkerId> leavers;
  // Without a running world no worker is removed: it may hold the only state. With one, at least
  // one member stays, since newcomers get their state from members that are in both the old and the
  // new world. The last one leaves by a later change.
  if (running_)
    for (const WorkerId worker : change.remove)
      if (is_member(worker) && rank_table.size() > 1) {
        rank_table.remove(worker);
        leavers.push_back(worker);
      }
  bool added = false;
  for (const WorkerId worker : change.add)
    if (is_training(worker) && !is_member(worker) && !is_leaving(worker)) {
      rank_table.add(worker);
      added = true;
    }
  const int size = static_cast<int>(rank_table.size());
  const bool named = !change.add.empty() || !change.remove.empty();
  if (running_ && named && !added && leavers.empty())
    return refuse("it names no worker that could join or leave");
  if (size < wanted_.minimum)
    return refuse(
        fmt::format("{} workers would be fewer than the minimum {}", size, wanted_.minimum));
  form(std::move(rank_table), std::move(leavers), change.id, change.reason, now);
}

void Membership::on(const StoodStill& stood, Time) {
  if (forming_) forming_->deadline += stood.time;
  if (aborting_) aborting_->deadline += stood.time;
  transfer_.stood_still(stood.time);
}

// ---------------------------------------------------------------- forming a world

void Membership::form(RankTable rank_table, std::vector<WorkerId> leavers,
                      std::optional<ChangeId> change, std::string reason, Time now) {
  last_ = last_.next();
  complaints_.next_attempt();
  Forming forming;
  forming.world.generation = last_;
  forming.world.reason = std::move(reason);
  for (const WorkerId worker : rank_table.order()) {
    const Peer& peer = peers_.at(worker);
    forming.ranks.try_emplace(worker, Rank(static_cast<std::int32_t>(forming.ranks.size())));
    forming.world.members.push_back({worker, peer.host, peer.slot, false});
  }
  if (!mark_holders(forming.world.members) && !restore_.from.empty()) {
    forming.world.restore = restore_.from;
    for (auto& member : forming.world.members) member.holds_state = true;  // each reads it
    released_call_ = 0;  // the save may be of an earlier call, which is then made again
  }
  forming.report.replanned = plan_outdated_ && rank_table.order() == rank_table_.order();
  forming.rank_table = std::move(rank_table);
  forming.leavers = std::move(leavers);
  forming.change = change;
  forming.at_once = !running_;
  forming.exchange = Exchange(forming.world.members.size());
  forming.since = now;
  forming.deadline = now + options_.prepare_timeout;
  forming.report.planned = running_.has_value();
  forming_ = std::move(forming);
  const auto all = participants();
  forming_->unprepared = {all.begin(), all.end()};
  outbox_.push_back(PlanWanted{last_, forming_->world.members});
}

void Membership::on(const PlanMade& made, Time) {
  if (!forming_ || forming_->world.generation != made.generation) return;
  forming_->world.plan = made.plan;
  forming_->named_call = named_call_;
  plan_outdated_ = false;
  const wire::Prepare prepare{.world = forming_->world,
                              .connect_ms = static_cast<std::int64_t>(
                                  connect_share * milliseconds(options_.prepare_timeout))};
  send(participants(), prepare);
}

// Marks the members that send the state. Planned change: the members of the running world, which
// are all at the same step. Forced: the workers with the newest state. Fresh job: rank 0. Returns
// false when no worker has state.
bool Membership::mark_holders(std::vector<wire::Member>& members) const {
  if (running_) {
    for (auto& member : members) member.holds_state = is_member(member.worker);
    return true;
  }
  StepId newest = no_state;
  for (const auto& member : members) newest = std::max(newest, peers_.at(member.worker).committed);
  for (auto& member : members)
    member.holds_state = newest != no_state && peers_.at(member.worker).committed == newest;
  if (newest == no_state) members.front().holds_state = true;
  return newest != no_state;
}

// The workers that take part in forming: members of the new world and leavers of the old one.
std::vector<WorkerId> Membership::participants() const {
  std::vector<WorkerId> workers = forming_->leavers;
  for (const auto& member : forming_->world.members) workers.push_back(member.worker);
  return workers;
}

void Membership::hear(WorkerId worker, const wire::Publish& publish, Time now) {
  if (!forming_ || forming_->world.generation != publish.generation) return;
  const auto rank = forming_->ranks.find(worker);
  if (rank == forming_->ranks.end()) return;
  if (publish.value.size() > wire::address_bytes_max) {
    const std::string why = fmt::format("its addresses take {} bytes, more than {}",
                                        publish.value.size(), wire::address_bytes_max);
    return hear(worker, wire::PrepareFailed{publish.generation, why, {{worker, false, false, why}}},
                now);
  }
  for (Gathering& one : forming_->exchange.publish(rank->second, publish.value, publish.needs)) {
    if (const Result<void> fits = fits_a_frame(one); !fits)
      return hear(worker, wire::PrepareFailed{publish.generation, fits.error().text, {}}, now);
    std::vector<WorkerId> to;
    for (const Rank member : one.to)
      to.push_back(forming_->world.members[static_cast<std::size_t>(member.value)].worker);
    send(std::move(to),
         wire::Gathered{publish.generation, std::move(one.values), std::move(one.ranks)});
  }
}

void Membership::hear(WorkerId worker, const wire::Prepared& prepared, Time now) {
  if (!forming_ || forming_->world.generation != prepared.generation || forming_->going) return;
  forming_->unprepared.erase(worker);
  forming_->report.rejected += prepared.rejected;
  if (!prepared.formation.empty())
    forming_->report.formation = prepared.formation;  // the same on all members
  if (!forming_->unprepared.empty()) return;
  forming_->going = true;
  went_ = forming_->world;
  forming_->report.prepare = now - forming_->since;
  state_born_ = true;
  if (forming_->at_once) rank_table_ = forming_->rank_table;
  std::uint64_t state_bytes = 0;
  for (const auto& member : forming_->world.members)
    state_bytes = std::max(state_bytes, peers_.at(member.worker).train.state_bytes);
  transfer_.begin(forming_->world.members, state_bytes, options_.transfer_timeout,
                  running_ ? rank_table_.order() : std::vector<WorkerId>{}, now);
  send(participants(), wire::Go{prepared.generation, forming_->at_once});
}

// True: this failure only shows that some worker has not published. Such a worker keeps its
// neighbours from connecting, and those keep theirs, so when the time for connecting is up they
// complain about each other.
bool Membership::waits_for_silent(WorkerId worker, const wire::PrepareFailed& failed,
                                  Time now) const {
  if (!forming_ || forming_->world.generation != failed.generation || forming_->going) return false;
  const bool could_not_connect =
      !failed.complaints.empty() && std::ranges::all_of(failed.complaints, [&](const auto& one) {
        return one.about != worker && !one.hung_up;
      });
  if (!could_not_connect || !forming_->ranks.contains(worker)) return false;
  const auto for_the_rest =
      std::chrono::duration_cast<Duration>((1 - connect_share) * options_.prepare_timeout);
  return !forming_->exchange.complete() && now >= forming_->deadline - for_the_rest;
}

void Membership::hear(WorkerId worker, const wire::PrepareFailed& failed, Time now) {
  if (waits_for_silent(worker, failed, now)) return preparation_overdue(now);
  note(worker, failed.generation, failed.complaints);
  if (!forming_ || forming_->world.generation != failed.generation || forming_->going) return;
  const std::string why = fmt::format("worker {}: {}", worker.value, failed.reason);
  if (forming_->at_once) {
    // Mostly a peer has died and will be reported in a moment. The failure is counted so that this
    // cannot repeat for ever.
    count_failure(now);
    start_abort(why, now);
    aborting_->messenger = worker;
    return maybe_finish_abort(now);
  }
  // The present world is well: the newcomers that are to blame are left out, and the others may be
  // in the next attempt.
  const auto newcomers = newcomers_of(*forming_);
  const auto members = rank_table_.order();
  const auto blamed =
      complaints_.verdict({newcomers.begin(), newcomers.end()}, {members.begin(), members.end()});
  bool known = false;
  for (const Blamed& one : blamed)
    if (std::ranges::count(newcomers, one.worker) > 0) {
      leave_out(one.worker, one.why);
      known = true;
    }
  if (!known)
    for (const WorkerId newcomer : newcomers) leave_out(newcomer, why);
  cancel(why);
}

void Membership::hear(WorkerId worker, const wire::Sample& sample, Time now) {
  transfer_.sample(worker, sample, now);
}

void Membership::cancel(const std::string& why) {
  send(participants(), wire::Cancel{forming_->world.generation});
  if (forming_->change)
    outbox_.push_back(ChangeEnded{*forming_->change, ChangeEnded::How::refused, why});
  forming_.reset();
  transfer_.end();
}

// ---------------------------------------------------------------- entering it

void Membership::hear(WorkerId worker, const wire::Entered& entered, Time now) {
  if (!forming_ || !forming_->going || forming_->world.generation != entered.generation) return;
  forming_->entered.insert(worker);
  transfer_.entered(worker, now);
  newest_seen_ = std::max(newest_seen_, entered.step);
  WorldFormed& report = forming_->report;
  report.step = entered.step;
  report.idle_ns = std::max(report.idle_ns, entered.idle_ns);
  report.transfer_ns = std::max(report.transfer_ns, entered.transfer_ns);
  report.transfer_bytes = std::max(report.transfer_bytes, entered.transfer_bytes);
  if (forming_->entered.size() == forming_->world.members.size()) world_entered();
  plan_again_if_due(now);
}

void Membership::world_entered() {
  Forming done = std::move(*forming_);
  forming_.reset();
  transfer_.end();
  incomplete_ = false;
  rank_table_ = done.rank_table;
  running_ = Running{done.world, false, done.named_call};
  note_entered(done.world);
  leaving_ = {done.leavers.begin(), done.leavers.end()};
  done.report.world = std::move(done.world);
  const StepId step = done.report.step;
  outbox_.push_back(std::move(done.report));
  if (done.change) outbox_.push_back(ChangeEnded{*done.change, ChangeEnded::How::done, {}});
  if (done.committed) first_commit(step.next());
  maybe_release();
}

void Membership::note_entered(const wire::World& world) {
  entered_.emplace();
  for (const auto& member : world.members) entered_->insert(member.worker);
}

void Membership::hear(WorkerId, const wire::Committed& committed, Time) {
  newest_seen_ = std::max(newest_seen_, committed.step);
  // Across hosts this may overtake the Entered of another member.
  if (forming_ && forming_->world.generation == committed.generation &&
      !std::exchange(forming_->committed, true))
    note_entered(forming_->world);
  if (running_ && running_->world.generation == committed.generation && !running_->committed)
    first_commit(committed.step);
}

// The state of the new world is one step ahead now, so the copy that the leavers kept is not needed
// any more.
void Membership::first_commit(StepId step) {
  running_->committed = true;
  failed_forms_ = 0;
  complaints_.forget();
  for (const auto& member : running_->world.members)
    if (const auto peer = peers_.find(member.worker); peer != peers_.end())
      peer->second.settled = true;
  outbox_.push_back(WorldCommitted{running_->world.generation, step});
  dismiss_leavers("left the world by decision");
}

void Membership::dismiss_leavers(const std::string& why) {
  if (leaving_.empty()) return;
  for (const WorkerId worker : leaving_) peers_.at(worker).left = true;
  outbox_.push_back(Dismissed{{leaving_.begin(), leaving_.end()}});
  send({leaving_.begin(), leaving_.end()}, wire::Dismiss{why});
  leaving_.clear();
}

}  // namespace elasticrun::rendezvous
