// What hosts say, and what is said of them (supervisor.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/error.hpp"
#include "job/prices.hpp"
#include "job/supervisor.hpp"

namespace elasticrun::job {

void Supervisor::on(const SlotsChanged& changed, Time now) {
  pool_.set_slots(changed.slots);
  const auto sizes =
      launcher::reachable_sizes(changed.slots_by_host, spec_.unit, spec_.limits, spec_.start);
  scaler_.offers_changed(offers(sizes, changed.slots, changed.prices, spec_.price), now);
  const int within = launcher::slots_within(changed.slots_by_host, spec_.limits.max_hosts);
  int most = spec_.limits.max > 0 ? spec_.limits.max : within;
  if (spec_.limits.max_hosts > 0) most = std::min(most, within);
  tell_shortage(changed, now);
  if (membership_.ever_formed()) {
    // A person edited the hosts; who chose no size wants them all.
    if (spec_.policy == "fixed" && spec_.start == 0) target_ = most;
    move_reason_ = changed.why;
    return;
  }
  if (!first_ && short_since_ == never)
    record("job_started", {{"program", spec_.argv},
                           {"policy", spec_.policy},
                           {"slots", static_cast<std::int64_t>(changed.slots.size())}});
  target_ = spec_.start > 0 ? std::min(spec_.start, most) : most;
  if (gathering_) begin(changed.guessed, now);
}

// While hosts for the first workers are gathered, gathered() says how they are too few; where slots
// were lost without a world, that was said with them.
void Supervisor::tell_shortage(const SlotsChanged& changed, Time now) {
  const bool running = phase_ == Phase::training || phase_ == Phase::reforming;
  if (gathering_ || changed.guessed || (!running && changed.source.empty())) return;
  const auto news = shortage_.look({.few = too_few(changed.slots),
                                    .source = changed.source,
                                    .slots = static_cast<int>(changed.slots.size()),
                                    .minimum = spec_.limits.min,
                                    .running = running,
                                    .patience = spec_.deadlines.minimum_timeout});
  if (news) on(*news, now);
}

// The hosts of the job, or those who name them, are in trouble or well again.
void Supervisor::on(const HostsNoted& noted, Time) {
  if (ending()) return;
  say(noted.well ? Tone::info : Tone::error, noted.text);
  record("hosts_noted", {{"well", noted.well}, {"reason", noted.text}});
}

void Supervisor::on(const HostUp& up, Time now) {
  Host& host = hosts_[up.host];
  host.asked = host.up = true;
  suspects_.settled(up.host);
  failed_hosts_.erase(up.host);
  troubles_.over(wiring_.host_name(up.host));
  host.leased_until = now + spec_.deadlines.lease;
  liveness_.host_heard(up.host, now);
  record("host_up", {{"host", wiring_.host_name(up.host)}});
}

void Supervisor::on(const HostDown& down, Time now) {
  const auto host = hosts_.find(down.host);
  if (host == hosts_.end() || !host->second.asked) return;
  const bool was_up = host->second.up;
  const Time dead_by = host->second.leased_until + spec_.deadlines.beat;  // and time for the kill
  hosts_.erase(host);
  suspects_.settled(down.host);
  liveness_.host_gone(down.host);
  const std::string name = wiring_.host_name(down.host);
  record("host_down",
         {{"host", name}, {"reason", phase_ == Phase::closing ? "the job is over" : down.reason}});
  std::vector<WorkerId> lost;
  for (const auto& [id, worker] : pool_.workers())
    if (worker.slot.host == down.host) lost.push_back(id);
  std::vector<WorkerId> stuck;
  for (const auto& [id, its_host] : unkillable_)
    if (its_host == down.host) stuck.push_back(id);
  failed_hosts_.insert(down.host);
  const bool nothing = gathering_ && first_ && std::ranges::all_of(pool_.slots(), [&](SlotId slot) {
                         return failed_hosts_.contains(slot.host);
                       });
  if (!ending()) {
    const std::string with =
        lost.empty() ? ""
                     : fmt::format(" with {} worker{}", lost.size(), lost.size() == 1 ? "" : "s");
    if (!nothing || failed_hosts_.size() > 1)
      troubles_.add(name,
                    was_up ? fmt::format("host lost{}: {}", with, down.reason)
                           : "cannot be used: " + down.reason,
                    now);
    for (const SlotId slot : pool_.slots())
      if (slot.host == down.host) pool_.host_failed(slot, now);
  }
  const std::string how = fmt::format("was lost with its host {} ({})", name, down.reason);
  for (const auto* gone : {&lost, &stuck})
    for (const WorkerId id : *gone)
      worker_ended(id, {exit_code::below_minimum, 0, how, dead_by, true}, now);
  if (nothing)
    end(exit_code::nothing_started,
        fmt::format("nothing could be started{}: {}: {}",
                    failed_hosts_.size() > 1 ? "; the last" : "", name, down.reason),
        now);
}

// An agent that was told to end has ended.
void Supervisor::on(const HostAway& away, Time now) {
  if (!hosts_.contains(away.host)) return;
  if (phase_ == Phase::closing) return on(HostDown{away.host, away.reason}, now);
  suspects_.away(away.host, away.reason, now);
}

void Supervisor::on(const HostBack& back, Time now) {
  if (!suspects_.suspected(back.host)) return;
  suspects_.settled(back.host);
  liveness_.host_heard(back.host, now);
  say(Tone::detail, fmt::format("{} has dialled again; output that was on its way may be missing",
                                wiring_.host_name(back.host)));
}

// Who says that a peer has hung up may be the first to know that its host is dead.
void Supervisor::hear_complaints(const std::vector<wire::Complaint>& complaints, Time now) {
  for (const wire::Complaint& complaint : complaints)
    if (const Worker* peer = pool_.find(complaint.about); peer && complaint.hung_up)
      suspects_.accused(peer->slot.host, complaint.reason, now);
  check_suspects(now);
}

void Supervisor::check_suspects(Time now) {
  if (suspects_.none()) return;
  const auto connected = std::ranges::count_if(
      hosts_, [&](const auto& host) { return host.second.up && !suspects_.suspected(host.first); });
  for (const auto& lost : suspects_.check(static_cast<std::size_t>(connected), now)) {
    out_.push_back(KillAgent{lost.host});
    on(HostDown{lost.host, lost.reason}, now);
  }
}

void Supervisor::on(const FromHost& from, Time now) {
  if (!hosts_.contains(from.host)) return;
  liveness_.host_heard(from.host, now);
  suspects_.heard(from.host, now);
  std::visit([&](const auto& report) { hear(from.host, report, now); }, from.report);
}

// A host speaks for its own workers only.
bool Supervisor::runs_there(WorkerId id, HostId host) const {
  const Worker* worker = pool_.find(id);
  if (worker) return worker->slot.host == host;
  const auto stuck = unkillable_.find(id);
  return stuck != unkillable_.end() && stuck->second == host;
}

void Supervisor::hear(HostId host, const wire::WorkerStarted& started, Time) {
  Worker* worker = pool_.find(started.worker);
  if (!worker || worker->slot.host != host) return;
  worker->running = true;
  record("worker_started", {{"worker", static_cast<std::int64_t>(started.worker.value)},
                            {"host", wiring_.host_name(host)},
                            {"slot", static_cast<std::int64_t>(worker->slot.index)},
                            {"pid", static_cast<std::int64_t>(started.pid)}});
}

void Supervisor::hear(HostId host, const wire::StartFailed& failed, Time now) {
  if (!runs_there(failed.worker, host)) return;
  worker_ended(failed.worker, {failed.code, 0, "did not start: " + failed.reason, now}, now);
}

void Supervisor::hear(HostId host, const wire::WorkerExited& exited, Time now) {
  if (!runs_there(exited.worker, host)) return;
  if (!exited.host_ends.empty())
    return worker_ended(exited.worker,
                        {.code = exit_code::below_minimum,
                         .how = fmt::format("was stopped with its host {} ({})",
                                            wiring_.host_name(host), exited.host_ends),
                         .dead_by = now,
                         .with_host = true},
                        now);
  std::string how = fmt::format("exited with code {}", exited.code);
  if (exited.signal != 0)
    how = fmt::format("was killed by signal {} (SIG{})", exited.signal,
                      ::sigabbrev_np(exited.signal) ? ::sigabbrev_np(exited.signal) : "?");
  worker_ended(exited.worker, {exited.code, exited.signal, how, now}, now);
}

// Only told while agents end: one that still hands over what its workers have printed is not late.
void Supervisor::hear(HostId, const wire::Output&, Time now) {
  if (phase_ == Phase::closing) deadline_ = now + closing_time;
}

void Supervisor::hear(HostId id, const wire::Beat& beat, Time now) {
  hosts_.at(id).leased_until = now + spec_.deadlines.lease;
  out_.push_back(Order{id, wire::Beat{Term(1), beat.clock_ns}});
}

}  // namespace elasticrun::job
