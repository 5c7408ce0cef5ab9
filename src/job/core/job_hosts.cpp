// What hosts report, and events about hosts (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/text.hpp"
#include "job/core/hosts/prices.hpp"
#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {
namespace {

// For WorkerDies and WorkerExited.
std::string how_it_ended(const auto& report) {
  std::string how = fmt::format("exited with code {}", report.code);
  if (report.signal != 0)
    how = fmt::format("was killed by signal {} (SIG{})", report.signal,
                      ::sigabbrev_np(report.signal) ? ::sigabbrev_np(report.signal) : "?");
  return report.error.empty() ? how : how + ": " + report.error;
}

}  // namespace

void Job::on(const SlotsChanged& changed, Time now) {
  slots_.set(changed.slots);
  drop_hosts(changed.dropped);
  concerns_staff(now);
  const auto sizes = launcher::hosts::reachable_sizes(changed.slots_by_host, spec_.unit,
                                                      spec_.limits, spec_.start);
  sizing_.offers_changed(hosts::offers(sizes, changed.slots, changed.prices, spec_.price), now);
  const int within = launcher::hosts::slots_within(changed.slots_by_host, spec_.limits.max_hosts);
  int most = spec_.limits.max > 0 ? spec_.limits.max : within;
  if (spec_.limits.max_hosts > 0) most = std::min(most, within);
  // While hosts for the first workers are gathered, gather() logs that they are too few; where
  // slots were lost without a world, that was logged with the loss.
  const bool run_stands = plain() && !workers_.empty();
  if (first_.begun() && !changed.guessed && (ending_.runs() || !changed.source.empty()))
    if (const auto news = watch_.shortage.look({.few = too_few(changed.slots),
                                                .source = changed.source,
                                                .slots = static_cast<int>(changed.slots.size()),
                                                .minimum = spec_.limits.min,
                                                .running = ending_.runs() || run_stands,
                                                .patience = spec_.deadlines.minimum_timeout}))
      on(*news, now);
  if (membership_.ever_formed()) {
    // The hosts were changed; a user who chose no size wants all of them.
    if (spec_.policy == "fixed" && spec_.start == 0) sizing_.set_target(most);
    requests_.changes.because(changed.why);
    return;
  }
  if (first_.state() == workers::Start::choosing && !ending_.short_of_workers())
    out_.record("job_started", {{"program", spec_.argv},
                                {"policy", spec_.policy},
                                {"slots", static_cast<std::int64_t>(changed.slots.size())}});
  sizing_.set_target(spec_.start > 0 ? std::min(spec_.start, most) : most);
  if (first_.begun() || first_.state() == workers::Start::ending) return;
  // With too few slots (hosts are still being found) nothing is started. But where slots are
  // guessed, hosts must be up to report how many they have.
  const bool chosen = first_.state() == workers::Start::gathering;
  if (!changed.guessed && !chosen)
    if (const auto few = too_few(slots_.all())) return wait_for_more(*few, now);
  first_.choose(workers::wanted_slots(slots_, workers_, sizing_.target(), now));
}

void Job::on(const HostsMet& met, Time) {
  for (const HostsMet::Host& host : met.hosts)
    hosts_.met(host.host, host.name, host.type, host.stays);
}

// The hosts of the job, or the file or program that names them, have a problem or are well again.
void Job::on(const HostsNoted& noted, Time) {
  if (ending_.ending()) return;
  out_.log(noted.well ? report::LogLevel::info : report::LogLevel::error, noted.text);
  out_.record("hosts_noted", {{"well", noted.well}, {"reason", noted.text}});
}

// ---------------------------------------------------------------- their agents

void Job::on(const HostUp& up, Time now) {
  hosts_.came(up.host, now + spec_.deadlines.lease);
  watch_.unused.came(up.host);
  watch_.suspects.settled(up.host);
  watch_.troubles.over(name_of(up.host));
  watch_.liveness.host_heard(up.host, now);
  out_.record("host_up", {{"host", name_of(up.host)}});
  concerns_staff(now);
}

void Job::on(const HostDown& down, Time now) {
  if (!hosts_.live(down.host)) return;
  const bool was_up = hosts_.up(down.host);
  // Its workers begin no step after the lease, and need time to end one that they apply.
  const Time dead_by = hosts_.leased_until(down.host) + spec_.deadlines.heartbeat;
  const bool free = is_free(down.host);
  const bool given_back = free || hosts_.given_back(down.host);
  free ? host_freed(down.host) : hosts_.went(down.host);
  watch_.suspects.settled(down.host);
  watch_.liveness.host_gone(down.host);
  concerns_staff(now);
  const std::string name = name_of(down.host);
  const std::string why = ending_.is(course::Phase::closing) ? "the job is over"
                          : free                             ? "the hosts were changed"
                          : given_back                       ? "no worker is wanted there"
                                                             : down.reason;
  out_.record("host_down", {{"host", name}, {"reason", why}});
  const std::vector<WorkerId> lost = workers_.on(down.host);
  const std::vector<WorkerId> stuck = workers_.stuck_on(down.host);
  const bool nothing =
      !free && first_.state() == workers::Start::gathering && restarts_.runs() == 0 &&
      std::ranges::all_of(slots_.all(), [&](SlotId slot) { return hosts_.failed(slot.host); });
  if (!ending_.ending() && !given_back) {
    const std::string with = lost.empty() ? "" : " with " + counted(lost.size(), "worker");
    if (!nothing || hosts_.failed() > 1)
      watch_.troubles.add(name,
                          was_up ? fmt::format("host lost{}: {}", with, down.reason)
                                 : "cannot be used: " + down.reason,
                          now);
    for (const SlotId slot : slots_.all())
      if (slot.host == down.host) slots_.host_failed(slot, now);
  }
  const std::string how = fmt::format("was lost with its host {} ({})", name, down.reason);
  for (const auto* gone : {&lost, &stuck})
    for (const WorkerId id : *gone)
      worker_ended(
          id, {.code = exit_code::below_minimum, .how = how, .dead_by = dead_by, .with_host = true},
          now);
  if (nothing)
    end(course::Cause::nothing_started,
        fmt::format("nothing could be started{}: {}: {}", hosts_.failed() > 1 ? "; the last" : "",
                    name, down.reason),
        now);
}

// While the job closes, a lost connection means that the agent has ended, as it was told to.
void Job::on(const HostAway& away, Time now) {
  if (!hosts_.live(away.host)) return;
  if (ending_.is(course::Phase::closing)) return on(HostDown{away.host, away.reason}, now);
  watch_.suspects.away(away.host, away.reason, now);
}

void Job::on(const HostBack& back, Time now) {
  if (!watch_.suspects.suspected(back.host)) return;
  watch_.suspects.settled(back.host);
  watch_.liveness.host_heard(back.host, now);
  out_.log(report::LogLevel::detail,
           name_of(back.host) + " has dialled again; output that was on its way may be missing");
}

void Job::give_up_host(HostId host, const std::string& reason, Time now) {
  out_.add(KillAgent{host});
  on(HostDown{host, reason}, now);
}

std::size_t Job::hosts_well() const {
  const auto up = static_cast<std::size_t>(hosts_.count(hosts::HostState::up));
  return up - std::min(up, watch_.suspects.size());
}

Time Job::watch_at() const {
  const Time at = watch_.suspects.wake_at(hosts_well());
  return ending_.over() ? at : std::min(at, watch_.liveness.wake_at(ending_.runs()));
}

// Acts on silent hosts and workers, and gives up hosts whose moment to dial again is over.
void Job::watch_hosts(Time now) {
  for (const auto& lost : watch_.suspects.check(hosts_well(), now))
    give_up_host(lost.host, lost.reason, now);
  if (ending_.over()) return;
  for (const auto& verdict : watch_.liveness.check(now, ending_.runs())) {
    if (const auto* host = std::get_if<rendezvous::HostSilent>(&verdict)) {
      give_up_host(host->host, host->reason, now);
    } else if (const auto* all = std::get_if<rendezvous::EverybodySilent>(&verdict)) {
      out_.log(report::LogLevel::error,
               "no host answers: they are suspended, or this machine has no network; waiting up "
               "to " +
                   to_text(all->patience));
    } else if (ending_.ending()) {
      continue;
    } else if (const auto* silent = std::get_if<rendezvous::WorkerSilent>(&verdict)) {
      lose_worker(silent->worker, silent->reason, now);
    } else if (const auto* stuck = std::get_if<rendezvous::ReductionStuck>(&verdict)) {
      tell(rendezvous::Stuck{stuck->worker, stuck->generation, stuck->reason}, now);
    }
  }
}

// ---------------------------------------------------------------- what they report

void Job::on(const FromHost& from, Time now) {
  if (!hosts_.live(from.host)) return;
  watch_.liveness.host_heard(from.host, now);
  watch_.suspects.heard(from.host, now);
  std::visit([&](const auto& report) { hear(from.host, report, now); }, from.report);
}

void Job::hear(HostId host, const wire::agent::Heartbeat& heartbeat, Time now) {
  hosts_.prolong(host, now + spec_.deadlines.lease);
  out_.add(Order{host, wire::agent::Heartbeat{first_term, heartbeat.clock_ns}});
}

void Job::hear(HostId host, const wire::agent::WorkerStarted& started, Time) {
  const workers::Worker* worker = workers_.find(started.worker);
  if (!worker || worker->slot.host != host) return;
  workers_.turn(started.worker, workers::WorkerTurn::started);
  out_.record("worker_started", {{"worker", static_cast<std::int64_t>(started.worker.value)},
                                 {"host", name_of(host)},
                                 {"slot", static_cast<std::int64_t>(worker->slot.index)},
                                 {"pid", static_cast<std::int64_t>(started.pid)}});
}

void Job::hear(HostId host, const wire::agent::StartFailed& failed, Time now) {
  if (!workers_.runs_on(failed.worker, host)) return;
  worker_ended(failed.worker,
               {.code = failed.code,
                .how = "did not start: " + failed.reason,
                .dead_by = now,
                .never_ran = true},
               now);
}

// The others need not wait until its memory has been taken apart.
void Job::hear(HostId host, const wire::agent::WorkerDies& dies, Time now) {
  const workers::Worker* const worker = workers_.find(dies.worker);
  if (!worker || worker->slot.host != host || !worker->is(workers::WorkerState::ready)) return;
  if (ending_.ending() || !membership_.is_training(dies.worker)) return;
  worker_ended(dies.worker,
               {.code = dies.code,
                .signal = dies.signal,
                .how = how_it_ended(dies),
                .dead_by = now + course::Ending::last_instructions_time,
                .still_dies = true},
               now);
}

void Job::hear(HostId host, const wire::agent::WorkerExited& exited, Time now) {
  if (!workers_.runs_on(exited.worker, host)) return;
  if (!exited.host_ends.empty())
    return worker_ended(
        exited.worker,
        {.code = exit_code::below_minimum,
         .how = fmt::format("was stopped with its host {} ({})", name_of(host), exited.host_ends),
         .dead_by = now,
         .with_host = true},
        now);
  worker_ended(exited.worker,
               {.code = exited.code,
                .signal = exited.signal,
                .how = how_it_ended(exited),
                .error_ns = exited.error_ns,
                .dead_by = now},
               now);
}

// Comes here only while agents end: one that still sends what its workers printed is not late.
void Job::hear(HostId, const wire::agent::Output&, Time now) {
  if (ending_.is(course::Phase::closing)) ending_.set_deadline(now + course::Ending::closing_time);
}

// Its slot is left out from now on; its host goes on. The worker there can no longer compute, and
// may hang for good instead of dying.
void Job::hear(HostId host, const wire::agent::GpuLost& lost, Time now) {
  const std::string name = name_of(host);
  out_.record("gpu_lost", {{"host", name},
                           {"slot", static_cast<std::int64_t>(lost.slot)},
                           {"gpu", lost.gpu},
                           {"xid", static_cast<std::int64_t>(lost.xid)},
                           {"reason", lost.reason}});
  out_.log(report::LogLevel::error, fmt::format("{}: slot {} is left out: GPU {} {}", name,
                                                lost.slot, lost.gpu, lost.reason));
  slots_.drop({host, lost.slot});
  concerns_staff(now);
  const auto id = workers_.in({host, lost.slot});
  if (id && !ending_.ending()) lose_worker(*id, "lost its GPU", now);
}

// The driver then takes its slots away (SlotsChanged).
void Job::hear(HostId host, const wire::agent::HostLeaves& leaves, Time now) {
  hosts_.leaves(host);
  out_.record("host_leaves", {{"host", name_of(host)}, {"reason", leaves.reason}});
  const bool all = membership_.steps() && every_member_leaves();
  std::vector<SlotId> others = slots_.all();
  std::erase_if(others, [&](SlotId slot) { return hosts_.leaving(slot.host); });
  std::string what = "its workers leave before";
  if (plain() && !restarts_.resizable())
    what = "its workers stay: the size of a job without the library is fixed";
  else if (all)
    what = "as will all hosts of the job, so workers stay until others can take their place";
  else if (const auto few = too_few(others))
    what = fmt::format("its workers stay until others can take their place ({})", *few);
  out_.log(report::LogLevel::info,
           fmt::format("{} will go: {}; {}", name_of(host), leaves.reason, what));
  if (all) requests_.saves.secure(summary_.newest(), now);
  concerns_staff(now);
}

}  // namespace elasticrun::job
