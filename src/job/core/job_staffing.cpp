// Which workers are started and stopped, and which change is proposed (job.hpp): compares what
// there is with what is wanted, and does what is missing. Doing it twice is harmless.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <set>

#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {
namespace {

// The place of each slot in a world of these slots, which are in rank order.
std::map<SlotId, launcher::hosts::Place> places_in(const std::vector<SlotId>& order) {
  std::vector<launcher::hosts::Slot> world;
  for (const SlotId slot : order) world.push_back({slot.host, {}, slot.index});
  std::map<SlotId, launcher::hosts::Place> places;
  if (world.empty()) return places;
  for (launcher::hosts::Place& place : launcher::hosts::places_of(world)) {
    const SlotId slot = order[static_cast<std::size_t>(place.rank.value)];
    places.emplace(slot, std::move(place));
  }
  return places;
}

}  // namespace

void Job::staff(Time now) {
  staff_time_.looked(slots_.all().size(), now);
  if (ending_.ending() || ending_.is(course::Phase::trained) ||
      first_.state() == workers::Start::choosing || first_.state() == workers::Start::ending)
    return;
  if (first_.state() == workers::Start::gathering) gather(now);
  if (first_.begun() && plain())
    keep_run(now);
  else if (first_.begun())
    fill(now);
  let_dropped_hosts_go();
  give_back_unused_hosts(now);
  tell_unsettled(now);
  staff_time_.again(std::min({first_.wake_at(), slots_.wake_at(now), requests_.changes.wake_at(now),
                              restarts_.wake_at(), watch_.unused.wake_at()}));
}

// Step times are not representative while processes start or groups form.
void Job::tell_unsettled(Time now) {
  const bool of_world =
      workers_.any_starting() || requests_.changes.under_way() || !membership_.running();
  sizing_.unsettled(plain() ? !run_is_settled() : of_world, now);
}

void Job::fill(Time now) {
  const auto wanted = slots_wanted(0, now);
  // Spares start and become ready like other workers; they only have no place in the world.
  const int spares = membership_.ever_formed() ? spec_.spares : 0;
  const auto with_spares = spares > 0 ? slots_wanted(spares, now) : wanted;
  ask_for_hosts(with_spares);
  start_missing(with_spares, now);
  dismiss_unwanted(with_spares, now);
  tell_wanted(with_spares, now);
  propose(wanted, now);
}

std::vector<SlotId> Job::slots_wanted(int spares, Time now) const {
  return workers::wanted_slots(slots_, workers_, target() + spares, now, membership_.members());
}

// ---------------------------------------------------------------- starting and stopping

bool Job::startable(SlotId slot) const {
  if (hosts_.given_back(slot.host)) return false;  // its agent ends
  return !plain() || first_.awaits(slot) || !first_.begun() || restarts_.resizable();
}

void Job::ask_for_hosts(const std::vector<SlotId>& wanted) {
  for (const SlotId slot : wanted)
    if (startable(slot) && hosts_.ask(slot.host)) out_.add(StartAgent{slot.host});
}

void Job::start_missing(const std::vector<SlotId>& wanted, Time now) {
  std::vector<SlotId> missing;
  for (const SlotId slot : wanted)
    if (!workers_.in(slot) && startable(slot) && hosts_.up(slot.host)) missing.push_back(slot);
  if (missing.empty()) return;
  // Hosts come up in any order, but the ranks of the first workers follow the host file.
  std::map<SlotId, launcher::hosts::Place> places = places_in(wanted);
  if (!first_.all_started())
    for (auto& [slot, place] : places_in(first_.order()))
      if (first_.awaits(slot)) places[slot] = place;
  for (const SlotId slot : missing) {
    const WorkerId id = workers_.order(slot, now + spec_.deadlines.start_timeout);
    first_.started(slot);
    const launcher::hosts::Place& place = places.at(slot);
    out_.add(StartWorker{id, slot, place, membership_.generation(), restarts_.count(),
                         restarts_.begins_after(place.rank)});
    if (!membership_.ever_formed()) {
      workers_.set_rank(id, place.rank.value);
      out_.add(Ranked{id, place.rank.value});
    }
    tell(rendezvous::WorkerUp{id, slot.host, slot.index}, now);
  }
}

// Stops newcomers that are not wanted any more. Members leave by a change, never by a signal; one
// that leaves is kept until it is dismissed, because it may be the last to have the state.
void Job::dismiss_unwanted(const std::vector<SlotId>& wanted, Time now) {
  if (requests_.changes.under_way() || !membership_.quiet()) return;
  const std::set<SlotId> keep(wanted.begin(), wanted.end());
  for (const auto& [id, worker] : workers_.rows()) {
    if (worker.departed() || worker.doomed()) continue;
    if (membership_.is_member(id) || membership_.is_leaving(id)) continue;
    if (!keep.contains(worker.slot)) stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
  }
}

// ---------------------------------------------------------------- changes

// True: the worker is ready, and its slot is not left out.
bool Job::may_join(WorkerId id, Time now) const {
  const workers::Worker* worker = workers_.find(id);
  return worker && worker->is(workers::WorkerState::ready) && !slots_.left_out(worker->slot, now);
}

// A worker that left by itself is not replaced. But if others were lost, at least one begins again.
int Job::target() const {
  const int wanted = std::max(0, sizing_.target() - slots_.retired());
  const bool some_lost = membership_.ever_formed() && !membership_.all_left();
  return wanted == 0 && some_lost ? std::min(1, sizing_.target()) : wanted;
}

// Once a world has formed, the others do not wait for a worker that left.
int Job::minimum() const {
  const int least = spec_.limits.min;
  if (!membership_.ever_formed() || slots_.retired() == 0) return least;
  return std::max({1, least - slots_.retired(), std::min(least, target())});
}

// Passes on the workers that fill up the world if it breaks, and how many it then needs.
void Job::tell_wanted(const std::vector<SlotId>& slots, Time now) {
  // If one worker must keep the state, another one must compute, where there is a place for both.
  const auto places = std::ranges::count_if(slots_.all(), [&](SlotId slot) {
    return workers_.in(slot) || slots_.usable_soon(slot, now);
  });
  const int least = std::max(minimum(), needs_keeper() && places > 1 ? 2 : 0);
  rendezvous::Wanted wanted{.size = std::max(target(), least), .minimum = least};
  for (const SlotId slot : slots)
    if (const auto id = workers_.in(slot); id && !membership_.is_member(*id) && may_join(*id, now))
      wanted.reserves.push_back(*id);
  tell(wanted, now);
}

// One change for all that is wanted: ready workers join, unwanted members leave, a replacement
// before the one it replaces. Nothing: the change waits for newcomers that are still starting;
// their start has its own deadline. But a host that will go does not wait for them.
std::optional<rendezvous::Change> Job::difference(const std::vector<SlotId>& wanted,
                                                  Time now) const {
  rendezvous::Change change;
  const bool in_a_hurry = some_member_is_leaving();
  for (const SlotId slot : wanted) {
    const auto id = workers_.in(slot);
    if (!id) {
      // A failed host is tried again while the job continues: the change does not wait for it.
      if (in_a_hurry || !startable(slot) || hosts_.failed(slot.host)) continue;
      return {};
    }
    if (membership_.is_member(*id)) continue;
    const workers::Worker& worker = *workers_.find(*id);
    if (worker.doomed() && worker.was_ready()) continue;  // its exit will be reported
    if (in_a_hurry && !worker.was_ready()) continue;
    if (!worker.was_ready() || membership_.is_leaving(*id)) return {};
    if (!slots_.left_out(slot, now)) change.add.push_back(*id);
  }
  // Unwanted members leave, the highest rank first, as far as the minimum allows. Where all of them
  // are on hosts that will go, nobody could train in their place.
  const std::set<SlotId> keep(wanted.begin(), wanted.end());
  auto members = membership_.members();
  if (change.add.empty() && every_member_leaves()) return change;
  std::ranges::reverse(members);
  auto size = static_cast<int>(members.size() + change.add.size());
  for (const WorkerId member : members) {
    const workers::Worker* worker = workers_.find(member);
    if (!worker || keep.contains(worker->slot) || size <= spec_.limits.min) continue;
    change.remove.push_back(member);
    --size;
  }
  change.add.resize(std::min(change.add.size(), room_beside(change.remove.size())));
  return change;
}

bool Job::on_leaving_host(WorkerId id) const {
  const workers::Worker* const worker = workers_.find(id);
  return worker && hosts_.leaving(worker->slot.host);
}

bool Job::every_member_leaves() const {
  return std::ranges::all_of(membership_.members(),
                             [&](WorkerId id) { return on_leaving_host(id); });
}

bool Job::some_member_is_leaving() const {
  return std::ranges::any_of(membership_.members(),
                             [&](WorkerId id) { return on_leaving_host(id); });
}

// How many workers may join while `leavers` members leave. When all members leave, one of them
// stays beside the newcomers until these have its state; so a maximum of 1 cannot be kept
// meanwhile, and sets no limit here.
std::size_t Job::room_beside(std::size_t leavers) const {
  if (spec_.limits.max < 2) return std::numeric_limits<std::size_t>::max();
  const std::size_t members = membership_.size();
  const std::size_t stay =
      membership_.running() && leavers > 0 ? std::max<std::size_t>(members - leavers, 1) : members;
  const auto most = static_cast<std::size_t>(spec_.limits.max);
  return most - std::min(stay, most);
}

bool Job::may_propose(Time now) const {
  const course::Saves& saves = requests_.saves;
  const bool waits = saves.lost() || (saves.under_way() && membership_.steps());
  return !plain() && !ending_.ending() && !waits && membership_.quiet() &&
         requests_.changes.may_begin(now);
}

void Job::propose(const std::vector<SlotId>& wanted, Time now) {
  if (!may_propose(now)) return;
  const auto change = difference(wanted, now);
  if (!change) return;
  if (change->add.empty() && change->remove.empty()) return consider_plan(now);
  if (membership_.running()) {
    if (!membership_.first_is_training()) return;
  } else if (static_cast<int>(membership_.size() + change->add.size()) < minimum()) {
    return ending_.short_since(now);
  }
  if (!membership_.ever_formed()) requests_.changes.because("the first world");
  begin_change(*change, now);
}

// No worker joins or leaves; but another plan for the same members may be better.
void Job::consider_plan(Time now) {
  staff_time_.nobody_moves();
  if (const auto why = better_plan(now)) {
    requests_.changes.because(*why);
    begin_change({}, now);
  } else if (sizing_.settled()) {
    requests_.changes.because("");  // it led to no change
  }
}

void Job::begin_change(rendezvous::Change change, Time now) {
  const char* const otherwise =
      change.remove.empty() ? "replacements and new slots" : "slots that are no longer wanted";
  change = requests_.changes.begin(std::move(change), otherwise);
  out_.record("change_started", {{"change", static_cast<std::int64_t>(change.id.value)},
                                 {"planned", true},
                                 {"add", static_cast<std::int64_t>(change.add.size())},
                                 {"remove", static_cast<std::int64_t>(change.remove.size())},
                                 {"reason", change.reason}});
  tell(change, now);
}

}  // namespace elasticrun::job
