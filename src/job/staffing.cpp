// Who is started, who is stopped, and which change is proposed (supervisor.hpp). Looks at what is
// and at what is wanted, and does what is missing; run after every event, so doing it twice must be
// harmless.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/error.hpp"
#include "job/advice.hpp"
#include "job/supervisor.hpp"
#include "launcher/name_ranges.hpp"

namespace elasticrun::job {

void Supervisor::staff(Time now) {
  if (ending() || phase_ == Phase::trained || !first_) return;
  give_up_late_starters(now);
  const auto members = membership_.members();
  const auto wanted = gathering_ ? first_choice(now) : pool_.wanted(target_, now, members);
  // Spares are started and become ready as the others do; what they lack is a place in the world.
  const int spares = membership_.ever_formed() ? spec_.spares : 0;
  const auto with_spares = spares > 0 ? pool_.wanted(target_ + spares, now, members) : wanted;
  start_wanted(with_spares, now);
  dismiss_unwanted(with_spares, now);
  tell_wanted(with_spares, members, now);
  propose(wanted, now);

  // While processes start and groups form, steps are not what they would be.
  const bool starting = std::ranges::any_of(
      pool_.workers(), [](const auto& w) { return !w.second.ready && !w.second.expected; });
  const bool unsettled = starting || change_ || !membership_.running();
  if (unsettled && !unsettled_) scaler_.change_started(now);
  if (!unsettled && unsettled_) scaler_.change_ended(now);
  unsettled_ = unsettled;
}

// A plain program has no membership to join: its first workers are all it gets.
bool Supervisor::startable(SlotId slot) const {
  return library_ || gathering_ || first_->contains(slot);
}

// Empty, or how these are too few to begin with.
std::string Supervisor::too_few(const std::vector<SlotId>& slots) const {
  std::set<HostId> hosts;
  for (const SlotId slot : slots) hosts.insert(slot.host);
  const launcher::Limits& limits = spec_.limits;
  if (static_cast<int>(hosts.size()) < limits.min_hosts)
    return fmt::format("{} of at least {} hosts", hosts.size(), limits.min_hosts);
  if (static_cast<int>(slots.size()) < std::max(limits.min, 1))
    return fmt::format("hosts for {} of at least {} workers", slots.size(), limits.min);
  return {};
}

// Nobody can bring more.
bool Supervisor::hosts_are_final() const {
  return spec_.hosts_file.empty() && spec_.host_discovery.empty() && spec_.join_key.empty();
}

void Supervisor::wait_for_more(const std::string& what, Time now) {
  if (short_since_ != never) return;
  short_since_ = now;
  tell_troubles(now, true);
  say(Tone::info, fmt::format("{} are there; waiting up to {} for more", what,
                              to_text(spec_.deadlines.minimum_timeout)));
}

// Before the first world: with too few slots (hosts are still being found) nothing is started, but
// hosts must be up to tell how many they have.
void Supervisor::begin(bool guessed, Time now) {
  const std::string few = guessed || first_ ? "" : too_few(pool_.slots());
  if (!few.empty()) return wait_for_more(few, now);
  const auto wanted = pool_.wanted(target_, now);
  first_.emplace(wanted.begin(), wanted.end());
}

// Slots for the first workers: those of hosts that have failed only where there are no others.
std::vector<SlotId> Supervisor::first_choice(Time now) const {
  auto slots = pool_.wanted(std::numeric_limits<int>::max(), now);
  std::ranges::stable_partition(slots,
                                [&](SlotId slot) { return !failed_hosts_.contains(slot.host); });
  slots.resize(std::min(slots.size(), static_cast<std::size_t>(target_)));
  return slots;
}

void Supervisor::ask_for_hosts(const std::vector<SlotId>& wanted) {
  for (const SlotId slot : wanted)
    if (startable(slot) && !std::exchange(hosts_[slot.host].asked, true))
      out_.push_back(StartAgent{slot.host});
}

void Supervisor::tell_waiting(const std::set<HostId>& missing, Time now) {
  if (now < began_ + silence || waiting_told_) return;
  std::vector<std::string> names;
  for (const HostId host : missing) names.push_back(wiring_.host_name(host));
  say(Tone::info, fmt::format("waiting for {} host{}: {}", names.size(),
                              names.size() == 1 ? "" : "s", launcher::fold_names(names)));
}

// The first workers start together, when each of their hosts is there or has failed: they are told
// their ranks and their number, and a plain program has no second chance to hear them. A host that
// comes later is one to grow by.
bool Supervisor::gathered(const std::vector<SlotId>& wanted, Time now) {
  if (!gathering_) return true;
  std::vector<SlotId> here;
  std::set<HostId> missing;
  for (const SlotId slot : wanted) {
    if (hosts_[slot.host].up) here.push_back(slot);
    if (!hosts_[slot.host].up && !failed_hosts_.contains(slot.host)) missing.insert(slot.host);
  }
  if (!missing.empty()) {
    tell_waiting(missing, now);
    return false;
  }
  if (const std::string few = too_few(here); !few.empty()) {
    if (!failed_hosts_.empty() || !hosts_are_final())
      wait_for_more(few, now);
    else if (std::ranges::all_of(hosts_, [](const auto& host) { return host.second.up; }))
      end(exit_code::usage,
          fmt::format("{} are there; add hosts, or say how many slots they have, as in a:8", few),
          now);
    return false;
  }
  tell_troubles(now, true);
  if (here.size() < first_->size())
    say(Tone::info, fmt::format("beginning with {} of {} workers; the others' hosts are not there",
                                here.size(), first_->size()));
  gathering_ = false;
  short_since_ = never;
  first_ranks_ = here;
  first_.emplace(here.begin(), here.end());
  return true;
}

void Supervisor::start_wanted(const std::vector<SlotId>& wanted, Time now) {
  ask_for_hosts(wanted);
  if (!gathered(wanted, now)) return;
  for (const SlotId slot : wanted) {
    if (pool_.worker_in(slot) || !startable(slot) || !hosts_[slot.host].up) continue;
    const WorkerId id = pool_.start(slot, now);
    // Hosts come up in any order; the ranks of the first workers follow the host file's.
    const auto& order = first_->erase(slot) > 0 ? first_ranks_ : wanted;
    const Rank rank(static_cast<std::int32_t>(std::ranges::find(order, slot) - order.begin()));
    out_.push_back(Order{slot.host, wiring_.start_order(id, order, rank)});
    if (!membership_.ever_formed()) {
      ranks_[id] = rank.value;
      out_.push_back(Ranked{id, rank.value});
    }
    tell(rendezvous::WorkerUp{id, slot.host, slot.index}, now);
  }
}

bool Supervisor::must_become_ready(const Worker& worker) const {
  return library_ && !ending() && phase_ != Phase::trained && !worker.ready && !worker.expected &&
         worker.trouble.empty();
}

void Supervisor::give_up_late_starters(Time now) {
  for (const auto& [id, worker] : pool_.workers()) {
    if (!must_become_ready(worker) || now < worker.since + spec_.deadlines.start_timeout) continue;
    pool_.find(id)->trouble =
        fmt::format("was not ready to train within {}", to_text(spec_.deadlines.start_timeout));
    stop_worker(id, SIGKILL, Duration::zero(), now);
  }
}

// Newcomers nobody wants any more. Members leave by a change, never by a signal; who has left by
// one is kept until it is dismissed, for it may be the last to have the state. A plain program
// keeps what it has begun with.
void Supervisor::dismiss_unwanted(const std::vector<SlotId>& wanted, Time now) {
  if (!library_ || change_ || !membership_.quiet()) return;
  for (const auto& [id, worker] : pool_.workers()) {
    if (worker.expected || !worker.trouble.empty()) continue;  // told already, or killed
    if (membership_.is_member(id) || membership_.is_leaving(id)) continue;
    if (std::ranges::count(wanted, worker.slot) > 0) continue;
    pool_.find(id)->expected = true;
    stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
  }
}

// Ready, and nothing is known against it.
bool Supervisor::may_join(WorkerId id, Time now) const {
  const auto worker = pool_.workers().find(id);
  return worker != pool_.workers().end() && worker->second.ready && !worker->second.expected &&
         worker->second.trouble.empty() && !pool_.left_out(worker->second.slot, now);
}

// Should the world break, it is filled up by these.
void Supervisor::tell_wanted(const std::vector<SlotId>& slots, const std::vector<WorkerId>& members,
                             Time now) {
  const std::set<WorkerId> in_world(members.begin(), members.end());
  // One that keeps the state while another one computes, where there is a place for both.
  const auto places = std::ranges::count_if(pool_.slots(), [&](SlotId slot) {
    return pool_.worker_in(slot) || pool_.usable_soon(slot, now);
  });
  const int minimum =
      needs_keeper() && places > 1 ? std::max(spec_.limits.min, 2) : spec_.limits.min;
  rendezvous::Wanted wanted{.size = std::max(target_, minimum), .minimum = minimum};
  for (const SlotId slot : slots)
    if (const auto id = pool_.worker_in(slot); id && !in_world.contains(*id) && may_join(*id, now))
      wanted.reserves.push_back(*id);
  tell(wanted, now);
}

// How many may join while so many members leave. Where all of a world leave, one of them stays
// beside the newcomers until these have its state; so a maximum of 1 cannot be kept meanwhile, and
// sets no limit here.
std::size_t Supervisor::room_beside(std::size_t leavers) const {
  if (spec_.limits.max < 2) return std::numeric_limits<std::size_t>::max();
  const std::size_t members = membership_.members().size();
  const std::size_t stay =
      membership_.running() && leavers > 0 ? std::max<std::size_t>(members - leavers, 1) : members;
  const auto most = static_cast<std::size_t>(spec_.limits.max);
  return most - std::min(stay, most);
}

// One change for all that is wanted: who is ready joins, who is not wanted leaves, a replacement
// before its victim. It waits for newcomers that are still starting; their start has a deadline of
// its own. Where nobody comes or goes, the same members may want another plan.
void Supervisor::propose(const std::vector<SlotId>& wanted, Time now) {
  if (!library_ || change_ || !membership_.quiet() || now < change_not_before_) return;
  rendezvous::Change change;
  for (const SlotId slot : wanted) {
    const auto id = pool_.worker_in(slot);
    if (!id) {
      // A host that failed is tried again beside the job: nobody waits for it.
      if (!startable(slot) || failed_hosts_.contains(slot.host)) continue;
      return;
    }
    if (membership_.is_member(*id)) continue;
    const Worker& worker = *pool_.find(*id);
    if (worker.ready && !worker.trouble.empty()) continue;  // killed; its exit will be reported
    if (!worker.ready || membership_.is_leaving(*id)) return;
    if (pool_.left_out(slot, now)) continue;
    change.add.push_back(*id);
  }
  // Who is not wanted leaves, the newest rank first, as far as the minimum allows.
  auto members = membership_.members();
  std::ranges::reverse(members);
  auto size = static_cast<int>(members.size() + change.add.size());
  for (const WorkerId member : members) {
    const Worker* worker = pool_.find(member);
    const bool unwanted = worker && std::ranges::count(wanted, worker->slot) == 0;
    if (!unwanted || size <= spec_.limits.min) continue;
    change.remove.push_back(member);
    --size;
  }
  change.add.resize(std::min(change.add.size(), room_beside(change.remove.size())));
  if (change.add.empty() && change.remove.empty()) {
    const auto why = better_plan(now);
    if (!why && !unsettled_) move_reason_.clear();  // nothing came of it
    if (!why) return;
    move_reason_ = *why;
  }
  if (membership_.running()) {
    if (!membership_.is_training(membership_.members().front())) return;
  } else if (static_cast<int>(members.size() + change.add.size()) < spec_.limits.min) {
    short_since_ = std::min(short_since_, now);
    return;
  }
  const bool first = !membership_.ever_formed();
  last_change_ = change.id = last_change_.next();
  change.reason = first                   ? "the first world"
                  : !move_reason_.empty() ? move_reason_
                  : change.remove.empty() ? "replacements and new slots"
                                          : "slots that are not wanted any more";
  move_reason_.clear();
  change_ = PendingChange{change.id, change.reason};
  record("change_started", {{"change", static_cast<std::int64_t>(change.id.value)},
                            {"planned", true},
                            {"add", static_cast<std::int64_t>(change.add.size())},
                            {"remove", static_cast<std::int64_t>(change.remove.size())},
                            {"reason", change.reason}});
  tell(change, now);
}

// Whether a deadline or a budget will do: once, and when that has changed.
void Supervisor::tell_forecast(const autoscaler::Decision& decision) {
  if (!decision.forecast || decision.forecast->met == forecast_met_) return;
  forecast_met_ = decision.forecast->met;
  say(*forecast_met_ ? Tone::info : Tone::error, decision.forecast->words);
}

void Supervisor::decide_size(Time now) {
  if (!library_ || !membership_.running() || now < scaler_.wake_at()) return;
  scaler_.progress(work_.left());
  const autoscaler::Decision decision = scaler_.decide(now);
  tell_forecast(decision);
  if (const auto question = scaler_.question()) out_.push_back(Ask{question_text(*question)});
  // Another batch for those who are there is no word on those who are missing.
  const bool rebatch = decision.action == autoscaler::Action::rebatch;
  const int target = rebatch ? target_ : decision.target;
  const bool moves = decision.action != autoscaler::Action::stay &&
                     (target != target_ || decision.global_batch != target_batch_);
  if (!moves && decision.reason == last_reason_) return;
  last_reason_ = decision.reason;
  std::vector<std::pair<std::string, Value>> fields{
      {"policy", std::string(scaler_.policy())},
      {"action", std::string(autoscaler::to_text(decision.action))},
      {"target", static_cast<std::int64_t>(decision.target)},
      {"reason", decision.reason}};
  if (decision.global_batch > 0) fields.emplace_back("global_batch", decision.global_batch);
  for (const auto& figure : decision.figures) fields.emplace_back(figure.name, figure.value);
  record("decision", std::move(fields));
  if (spec_.explain || moves)
    say(Tone::info, fmt::format("{}: {}", scaler_.policy(), decision.reason));
  if (!moves) return;
  target_ = target;
  target_batch_ = decision.global_batch;
  told_ = move_reason_ = decision.reason;
}

// A program that fails each time, in whatever words, is heard once.
void Supervisor::on(const Advised& advised, Time) {
  const auto followed = scaler_.advised(read_advice(advised.output));
  if (followed) return;
  const std::string& why = followed.error().text;
  if (!bad_advice_.insert(why.substr(0, why.find_first_of("0123456789:'"))).second) return;
  record("advice_ignored", {{"reason", why}});
  say(Tone::error, fmt::format("--policy {}: {}; the size stays as it is", spec_.policy, why));
}

}  // namespace elasticrun::job
