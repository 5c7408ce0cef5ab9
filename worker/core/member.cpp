// See member.hpp.
#include "worker/core/member.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "worker/core/neighbours.hpp"

namespace elasticrun::worker::core {
namespace {

// The most complaints in one message. One failure causes others; the first ones name the cause.
constexpr std::size_t complaints_max = 16;
constexpr const char* lease_over_words = "the lease of its host had ended";

std::vector<std::string> by_rank(const wire::Gathered& gathered, std::size_t size) {
  if (gathered.ranks.empty()) return gathered.values;
  std::vector<std::string> values(size);
  for (std::size_t i = 0; i < std::min(gathered.ranks.size(), gathered.values.size()); ++i)
    if (const auto rank = static_cast<std::size_t>(gathered.ranks[i]); rank < size)
      values[rank] = gathered.values[i];
  return values;
}

}  // namespace

void Member::receive(const wire::ToWorker& message) {
  if (leaves_ && std::holds_alternative<wire::Dismiss>(message)) return evict(dismissed_);
  if (evicted_) return;
  std::visit([this](const auto& one) { on(one); }, message);
}

// ---------------------------------------------------------------- preparing the next world

void Member::on(const wire::Prepare& prepare) {
  const wire::World& world = prepare.world;
  if (world.generation <= aborted_) return;
  if (world_ && world.generation <= world_->world.generation) return;
  const auto me = std::ranges::find(world.members, self_, &wire::Member::worker);
  next_ = Place{.world = world};
  if (me == world.members.end()) {  // it leaves: it has no group to form, but it votes
    send(wire::Prepared{world.generation, {}});
    return;
  }
  next_->rank = Rank(static_cast<std::int32_t>(me - world.members.begin()));
  collective::GroupSpec spec{.rank = next_->rank.value,
                             .size = static_cast<int>(world.members.size()),
                             .generation = world.generation,
                             .secret = prepare.secret};
  spec.one_host = std::ranges::all_of(
      world.members, [&](const wire::Member& member) { return member.host == me->host; });
  if (!is_full_mesh(spec.size))
    spec.neighbours = neighbours(spec.rank, spec.size, sides_of_transfer(holders(world)));
  if (prepare.connect_ms > 0) spec.connect_limit = std::chrono::milliseconds(prepare.connect_ms);
  outbox_.push_back(FormGroup{std::move(spec)});
}

void Member::published(Generation generation, std::string addresses, std::vector<int> needs) {
  if (expects(generation)) send(wire::Publish{generation, std::move(addresses), std::move(needs)});
}

void Member::on(const wire::Gathered& gathered) {
  if (!expects(gathered.generation)) return;
  outbox_.push_back(
      ConnectGroup{gathered.generation, by_rank(gathered, next_->world.members.size())});
}

void Member::formed(Generation generation, std::string formation, int rejected) {
  if (expects(generation)) send(wire::Prepared{generation, std::move(formation), rejected});
}

void Member::form_failed(Generation generation, const collective::GroupBroken& error) {
  if (!expects(generation)) return;
  send(wire::PrepareFailed{generation, error.what(), complaints(next_->world, error.troubles)});
}

std::vector<wire::Complaint> Member::complaints(
    const wire::World& world, const std::vector<collective::PeerTrouble>& troubles) const {
  std::vector<wire::Complaint> complaints;
  for (const collective::PeerTrouble& trouble : troubles) {
    const auto rank = static_cast<std::size_t>(trouble.rank);
    if (complaints.size() == complaints_max || rank >= world.members.size()) break;
    complaints.push_back({.about = world.members[rank].worker,
                          .hung_up = trouble.hung_up,
                          .reason = trouble.reason});
  }
  return complaints;
}

void Member::held_up(const std::vector<collective::HeldUp>& groups) {
  if (owes_answer_) return;  // an earlier Abort has already ended these groups
  held_up_.clear();
  for (const auto& [generation, waits_for, lost_links] : groups) {
    const Place* const place = expects(generation)   ? &*next_
                               : running(generation) ? &*world_
                                                     : nullptr;
    if (!place) continue;
    std::vector<collective::PeerTrouble> waits;
    // During a step it is normal to wait for ranks that still compute.
    if (!place->entered)
      for (const int rank : waits_for) waits.push_back({rank, false, "it was waited for"});
    for (wire::Complaint& complaint : complaints(place->world, waits)) {
      complaint.waits = true;
      held_up_.push_back(std::move(complaint));
    }
    std::ranges::move(complaints(place->world, lost_links), std::back_inserter(held_up_));
  }
}

void Member::on(const wire::Cancel& cancel) {
  if (expects(cancel.generation)) {
    outbox_.push_back(DropGroup{cancel.generation});
    next_.reset();
    return;
  }
  // This worker is a candidate that has received its Go and waits for a state that will not come.
  if (running(cancel.generation) && phase_ != Phase::swap && !world_->entered) {
    outbox_.push_back(DropGroup{cancel.generation});
    world_.reset();
    phase_ = Phase::waiting;
  }
}

void Member::on(const wire::Go& go) {
  if (!expects(go.generation)) return;
  next_->go = true;
  next_->at_once = go.at_once;
  if (!world_) enter_next();
}

// ---------------------------------------------------------------- the gate

// The world may have been aborted since the training thread asked for its task.
bool Member::begin_compute(Time now) {
  if (!lease_holds(now)) {
    // This is a loop of one's own, in the middle of a step.
    if (phase_ == Phase::compute) broken(collective::GroupBroken(lease_over_words));
    return false;
  }
  if (task() != Task::step) return false;
  phase_ = Phase::compute;
  return true;
}

Votes Member::votes(bool may_change) {
  Votes mine;
  voted_ = asked_;
  if (may_change && next_ && next_->go) mine.change = 1;
  if (asked_) {
    mine.save = Votes::digit_of(asked_->number);
    mine.save_square = mine.save * mine.save;
  }
  return mine;
}

bool Member::may_apply(const Votes& sums, Time now) {
  if (phase_ != Phase::compute || evicted_) return false;
  if (!lease_holds(now)) {
    // The others may have applied this step: even if the lease is renewed, this world cannot go on.
    broken(collective::GroupBroken(lease_over_words));
    return false;
  }
  const std::size_t members = world_->world.members.size();
  agreed_ = next_ && next_->go && sums.agree_to_change(members);
  save_agreed_ = voted_ && sums.agree_to_save(voted_->number, members);
  phase_ = Phase::apply;
  return true;
}

Member::After Member::commit() {
  ER_CHECK(phase_ == Phase::apply && world_);
  committed_ = committed_.next();
  collectives_ = 0;
  phase_ = Phase::between;
  if (!world_->committed_once) {
    world_->committed_once = true;
    const Generation generation = world_->world.generation;
    send(wire::Committed{generation, committed_});
    // All members took part in this world's reduction, so none reads from an older group.
    outbox_.push_back(CloseGroups{generation});
  }
  if (std::exchange(save_agreed_, false)) {
    save_next(*voted_, voted_->stop);
    // All members have agreed to this in the same step, so none of them enters the next world.
    if (save_now_->waits) {
      phase_ = Phase::saved;
      agreed_ = false;
      save_without_step();
    }
  }
  if (abort_if_reached()) return After::left;
  if (owes_answer_) {
    answer();
    return After::aborted;
  }
  if (agreed_) {
    agreed_ = false;
    enter_next();
  }
  dismiss_if_due();
  return After::stands;
}

void Member::broken(const collective::GroupBroken& error) {
  if (phase_ != Phase::compute && phase_ != Phase::transfer) return;  // aborted meanwhile
  phase_ = Phase::waiting;
  world_->broken = true;
  send(wire::Broken{world_->world.generation, error.what(),
                    complaints(world_->world, error.troubles)});
  if (abort_after_) {
    abort(*abort_after_);
    return close_groups();  // so that the others notice as well
  }
  dismiss_if_due();
}

// ---------------------------------------------------------------- entering a world

void Member::enter_next() {
  world_ = std::exchange(next_, std::nullopt);
  if (world_->rank == Rank(-1)) {  // it leaves, and keeps its state until it is dismissed
    world_.reset();
    phase_ = Phase::leaving;
    return;
  }
  if (phase_ != Phase::outside) phase_ = Phase::waiting;
}

std::vector<bool> holders(const wire::World& world) {
  std::vector<bool> holds;
  for (const wire::Member& member : world.members) holds.push_back(member.holds_state);
  return holds;
}

bool Member::holds_state() const {
  return world_->world.members[static_cast<std::size_t>(world_->rank.value)].holds_state;
}

void Member::begin_transfer() {
  ER_CHECK(world_ && !world_->entered);
  phase_ = Phase::transfer;
  asked_.reset();  // it was for the world before, and its members are asked again
  save_now_.reset();
}

bool Member::may_swap() {
  if (phase_ != Phase::transfer) return false;
  phase_ = Phase::swap;
  return true;
}

void Member::entered(wire::Entered report) {
  if (phase_ != Phase::swap && phase_ != Phase::transfer) return;  // aborted meanwhile
  committed_ = report.step;
  collectives_ = 0;
  phase_ = Phase::between;
  world_->entered = true;
  report.generation = world_->world.generation;
  send(report);
  if (owes_answer_) answer();
}

// ---------------------------------------------------------------- the training thread's life

void Member::ready(const wire::TrainSpec& train) {
  call_ = train.call;
  names_batch_ = train.batch > 0;
  phase_ = world_ && world_->entered ? Phase::between : Phase::waiting;
  send(wire::Ready{train});
}

Task Member::task() const {
  if (evicted_) return Task::evicted;
  if (save_now_ && writes_without_step()) return Task::save;
  if (call_ > 0 && released_call_ >= call_) return Task::released;
  if (!world_ || world_->broken || lease_over_) return Task::wait;
  if (phase_ == Phase::done || phase_ == Phase::saved) return Task::wait;
  if (!world_->entered) return Task::enter;
  // It has formed before the batch was known, and the one with a plan is about to.
  const bool has_plan = world_->world.plan.global_batch > 0 || !names_batch_;
  return has_plan ? Task::step : Task::wait;
}

void Member::diverged(const std::vector<int>& odd, const std::string& where, bool mixed) {
  if (phase_ != Phase::compute) return;  // aborted meanwhile
  wire::Diverged message{
      .generation = world_->world.generation, .step = committed_, .where = where, .mixed = mixed};
  for (const int rank : odd)
    message.odd.push_back(world_->world.members[static_cast<std::size_t>(rank)].worker);
  send(std::move(message));
  if (!mixed && std::ranges::count(odd, world_->rank.value) > 0) committed_ = no_state;
}

void Member::explain(wire::StepSamples samples) {
  if (phase_ != Phase::compute) return;  // aborted meanwhile
  samples.generation = world_->world.generation;
  send(std::move(samples));
}

bool Member::done(std::int64_t call) {
  if (task() != Task::step) return true;  // aborted meanwhile
  if (phase_ == Phase::apply) return false;
  phase_ = Phase::done;
  send(wire::Done{call, committed_});
  save_without_step();
  dismiss_if_due();
  return true;
}

void Member::on(const wire::Release& release) {
  released_call_ = std::max(released_call_, release.call);
}

// Its end may be over: the Lease comes late if this process did not run, and the heartbeat behind
// it may be old. The next step checks that with lease_holds().
void Member::on(const wire::Lease& lease) {
  lease_ends_ = Time(Duration(lease.ends_ns));
  lease_over_ = false;
}

bool Member::lease_holds(Time now) {
  lease_over_ = now >= lease_ends_;
  return !lease_over_;
}

}  // namespace elasticrun::worker::core
