// Which workers are started and stopped, and which change is proposed (job.hpp): compares what
// there is with what is wanted, and does what is missing. Doing it twice is harmless.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <set>

#include "base/name_ranges.hpp"
#include "base/text.hpp"
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
      first_.state() == workers::Start::choosing)
    return;
  if (first_.state() == workers::Start::gathering) gather(now);
  if (first_.begun()) fill(now);
  tell_unsettled(now);
  staff_time_.again(std::min({first_.wake_at(), slots_.wake_at(now), changes_.wake_at(now)}));
}

// Step times are not representative while processes start or groups form.
void Job::tell_unsettled(Time now) {
  sizing_.unsettled(workers_.any_starting() || changes_.under_way() || !membership_.running(), now);
}

void Job::fill(Time now) {
  const auto members = membership_.members();
  const auto wanted = workers::wanted_slots(slots_, workers_, sizing_.target(), now, members);
  // Spares start and become ready like other workers; they only have no place in the world.
  const int spares = membership_.ever_formed() ? spec_.spares : 0;
  const auto with_spares =
      spares > 0 ? workers::wanted_slots(slots_, workers_, sizing_.target() + spares, now, members)
                 : wanted;
  ask_for_hosts(with_spares);
  start_missing(with_spares, now);
  dismiss_unwanted(with_spares, now);
  tell_wanted(with_spares, now);
  propose(wanted, now);
}

// ---------------------------------------------------------------- the first workers

// In what way these slots are too few to begin with; nothing: they are enough.
std::optional<std::string> Job::too_few(const std::vector<SlotId>& slots) const {
  std::set<HostId> hosts;
  for (const SlotId slot : slots) hosts.insert(slot.host);
  const launcher::hosts::Limits& limits = spec_.limits;
  if (static_cast<int>(hosts.size()) < limits.min_hosts)
    return fmt::format("{} of at least {} hosts", hosts.size(), limits.min_hosts);
  if (static_cast<int>(slots.size()) < std::max(limits.min, 1))
    return fmt::format("hosts for {} of at least {} workers", slots.size(), limits.min);
  return std::nullopt;
}

void Job::wait_for_more(const std::string& what, Time now) {
  if (ending_.short_of_workers()) return;
  ending_.short_since(now);
  tell_all_troubles(now);
  out_.log(report::LogLevel::info, fmt::format("{} are there; waiting up to {} for more", what,
                                               to_text(spec_.deadlines.minimum_timeout)));
}

// Slots for the first workers. Those of failed hosts are taken only where there are no others.
std::vector<SlotId> Job::first_choice(Time now) const {
  auto slots = workers::wanted_slots(slots_, workers_, std::numeric_limits<int>::max(), now);
  std::ranges::stable_partition(slots, [&](SlotId slot) { return !hosts_.failed(slot.host); });
  slots.resize(std::min(slots.size(), static_cast<std::size_t>(sizing_.target())));
  return slots;
}

void Job::gather(Time now) {
  const auto wanted = first_choice(now);
  ask_for_hosts(wanted);
  std::vector<SlotId> here;
  std::set<HostId> missing;
  for (const SlotId slot : wanted) {
    if (hosts_.up(slot.host))
      here.push_back(slot);
    else if (!hosts_.failed(slot.host))
      missing.insert(slot.host);
  }
  if (!missing.empty()) return tell_missing(missing, now);
  if (now >= first_.wake_at()) first_.tell_missing_at(never);
  const auto few = too_few(here);
  if (!few) return begin(here, now);
  const bool final = spec_.hosts_file.empty() && spec_.host_discovery.empty() &&
                     spec_.join_key.empty();  // no more hosts can come
  if (hosts_.failed() > 0 || !final)
    wait_for_more(*few, now);
  else if (hosts_.live().size() == hosts_.in(hosts::HostState::up).size())
    end(course::Cause::hosts_too_few,
        fmt::format("{} are there; add hosts, or slots, as in a:8", *few), now);
}

void Job::tell_missing(const std::set<HostId>& missing, Time now) {
  if (now < first_.wake_at()) return;
  first_.tell_missing_at(never);
  std::vector<std::string> names;
  for (const HostId host : missing) names.push_back(name_of(host));
  out_.log(report::LogLevel::info,
           fmt::format("waiting for {}: {}", counted(names.size(), "host"), fold_names(names)));
}

void Job::begin(const std::vector<SlotId>& here, Time now) {
  tell_all_troubles(now);
  if (here.size() < first_.chosen())
    out_.log(report::LogLevel::info,
             fmt::format("beginning with {} of {} workers; the others' hosts are not there",
                         here.size(), first_.chosen()));
  first_.begin(here);
  ending_.enough();
  start_missing(here, now);
}

// ---------------------------------------------------------------- starting and stopping

bool Job::startable(SlotId slot) const {
  return first_.program() == workers::Program::with_library || first_.awaits(slot) ||
         !first_.begun();
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
    out_.add(StartWorker{id, slot, place, membership_.generation()});
    if (!membership_.ever_formed()) {
      workers_.set_rank(id, place.rank.value);
      out_.add(Ranked{id, place.rank.value});
    }
    tell(rendezvous::WorkerUp{id, slot.host, slot.index}, now);
  }
}

// Stops newcomers that are not wanted any more. Members leave by a change, never by a signal; one
// that leaves is kept until it is dismissed, because it may be the last to have the state. A plain
// program keeps the workers it began with.
void Job::dismiss_unwanted(const std::vector<SlotId>& wanted, Time now) {
  if (first_.program() == workers::Program::plain || changes_.under_way() || !membership_.quiet())
    return;
  const std::set<SlotId> keep(wanted.begin(), wanted.end());
  for (const auto& [id, worker] : workers_.rows()) {
    if (worker.expected() || worker.is(workers::WorkerState::fenced)) continue;
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

// Passes on the workers that fill up the world if it breaks, and how many it then needs.
void Job::tell_wanted(const std::vector<SlotId>& slots, Time now) {
  // If one worker must keep the state, another one must compute, where there is a place for both.
  const auto places = std::ranges::count_if(slots_.all(), [&](SlotId slot) {
    return workers_.in(slot) || slots_.usable_soon(slot, now);
  });
  const int minimum =
      needs_keeper() && places > 1 ? std::max(spec_.limits.min, 2) : spec_.limits.min;
  rendezvous::Wanted wanted{.size = std::max(sizing_.target(), minimum), .minimum = minimum};
  for (const SlotId slot : slots)
    if (const auto id = workers_.in(slot); id && !membership_.is_member(*id) && may_join(*id, now))
      wanted.reserves.push_back(*id);
  tell(wanted, now);
}

// One change for all that is wanted: ready workers join, unwanted members leave, a replacement
// before the one it replaces. Nothing: the change waits for newcomers that are still starting;
// their start has its own deadline.
std::optional<rendezvous::Change> Job::difference(const std::vector<SlotId>& wanted,
                                                  Time now) const {
  rendezvous::Change change;
  for (const SlotId slot : wanted) {
    const auto id = workers_.in(slot);
    if (!id) {
      // A failed host is tried again while the job goes on: the change does not wait for it.
      if (!startable(slot) || hosts_.failed(slot.host)) continue;
      return {};
    }
    if (membership_.is_member(*id)) continue;
    const workers::Worker& worker = *workers_.find(*id);
    if (worker.is(workers::WorkerState::fenced) && worker.was_ready())
      continue;  // its exit will be reported
    if (!worker.was_ready() || membership_.is_leaving(*id)) return {};
    if (!slots_.left_out(slot, now)) change.add.push_back(*id);
  }
  // Unwanted members leave, the highest rank first, as far as the minimum allows.
  const std::set<SlotId> keep(wanted.begin(), wanted.end());
  auto members = membership_.members();
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
  return first_.program() == workers::Program::with_library && !ending_.ending() &&
         membership_.quiet() && changes_.may_begin(now);
}

void Job::propose(const std::vector<SlotId>& wanted, Time now) {
  if (!may_propose(now)) return;
  const auto change = difference(wanted, now);
  if (!change) return;
  if (change->add.empty() && change->remove.empty()) return consider_plan(now);
  if (membership_.running()) {
    if (!membership_.first_is_training()) return;
  } else if (static_cast<int>(membership_.size() + change->add.size()) < spec_.limits.min) {
    return ending_.short_since(now);
  }
  if (!membership_.ever_formed()) changes_.because("the first world");
  begin_change(*change, now);
}

// No worker joins or leaves; but another plan for the same members may be better.
void Job::consider_plan(Time now) {
  staff_time_.nobody_moves();
  if (const auto why = better_plan(now)) {
    changes_.because(*why);
    begin_change({}, now);
  } else if (sizing_.settled()) {
    changes_.because("");  // it led to no change
  }
}

void Job::begin_change(rendezvous::Change change, Time now) {
  const char* const otherwise =
      change.remove.empty() ? "replacements and new slots" : "slots that are not wanted any more";
  change = changes_.begin(std::move(change), otherwise);
  out_.record("change_started", {{"change", static_cast<std::int64_t>(change.id.value)},
                                 {"planned", true},
                                 {"add", static_cast<std::int64_t>(change.add.size())},
                                 {"remove", static_cast<std::int64_t>(change.remove.size())},
                                 {"reason", change.reason}});
  tell(change, now);
}

}  // namespace elasticrun::job
