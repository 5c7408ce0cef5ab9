// Events of supervisor.hpp: what hosts, workers and people say.
#include "job/supervisor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/error.hpp"
#include "job/prices.hpp"
#include "wire/limits.hpp"

namespace elasticrun::job {
namespace {

autoscaler::WorkerSample to_report(WorkerId worker, const wire::Sample& sample) {
  autoscaler::WorkerSample report{worker,
                                  sample.generation,
                                  sample.step,
                                  sample.steps,
                                  sample.samples,
                                  Duration(sample.wall_ns),
                                  Duration(sample.compute_ns)};
  if (!sample.noise.empty()) {
    const wire::Noise& noise = sample.noise.front();
    report.noise = autoscaler::Noise{noise.square, noise.variance, noise.steps, noise.biased,
                                     noise.scale_invariant_steps};
  }
  return report;
}

rendezvous::MembershipOptions membership_options(
    const JobSpec& spec, decltype(rendezvous::MembershipOptions::plan) plan) {
  rendezvous::MembershipOptions options;
  options.plan = std::move(plan);
  options.minimum = spec.limits.min;
  options.abort_timeout = spec.deadlines.abort_timeout;
  options.prepare_timeout = spec.deadlines.prepare_timeout;
  return options;
}

rendezvous::LivenessOptions liveness_options(const Deadlines& deadlines) {
  return {deadlines.agent_timeout, deadlines.lease, deadlines.hung};
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::make(const JobSpec& spec, Wiring wiring) {
  autoscaler::Options options;
  options.policy = spec.policy;
  options.target = spec.start;
  options.batch = spec.batch;
  options.aims = spec.aims;
  options.limits.min = spec.limits.min;
  options.limits.max =
      spec.limits.max > 0 ? spec.limits.max : static_cast<int>(wire::world_size_max);
  options.limits.settle = spec.deadlines.settle;
  auto scaler = autoscaler::Autoscaler::make(std::move(options));
  if (!scaler) return scaler.error();
  return std::unique_ptr<Supervisor>(new Supervisor(spec, std::move(wiring), std::move(*scaler)));
}

Supervisor::Supervisor(const JobSpec& spec, Wiring wiring, autoscaler::Autoscaler scaler)
    : spec_(spec),
      wiring_(std::move(wiring)),
      scaler_(std::move(scaler)),
      shares_(spec.deadlines.settle),
      membership_(membership_options(
          spec, [this](const std::vector<wire::Member>& members) { return plan_for(members); })),
      liveness_(liveness_options(spec.deadlines)),
      stragglers_(autoscaler::StragglerRule{.confirm = spec.deadlines.straggler_time}),
      max_restarts_(spec.max_restarts.value_or(10)) {}

std::vector<SupervisorAction> Supervisor::step(const SupervisorEvent& event, Time now) {
  if (began_ == Time{}) began_ = counted_ = now;
  worker_s_ += seconds(now - counted_) * static_cast<double>(pool_.workers().size());
  counted_ = now;
  std::visit([&](const auto& e) { on(e, now); }, event);
  if (phase_ < Phase::closing) check_liveness(now);
  if (!ending()) {
    check_stragglers(now);
    decide_size(now);
  }
  if (now >= membership_.wake_at()) tell(rendezvous::Tick{}, now);
  staff(now);
  waiting_told_ = waiting_told_ || now >= began_ + silence;
  tell_troubles(now, ending());
  wind_up(now);
  return std::exchange(out_, {});
}

Time Supervisor::wake_at(Time now) const {
  Time at = std::min({membership_.wake_at(), pool_.wake_at(now), deadline_});
  if (phase_ < Phase::closing) at = std::min(at, liveness_.wake_at());
  if (watches_stragglers()) at = std::min(at, stragglers_.wake_at());
  if (library_ && !ending() && membership_.running())
    at = std::min(at, std::max(scaler_.wake_at(), now));
  if (gathering_ && !waiting_told_) at = std::min(at, std::max(began_ + silence, now));
  if (change_not_before_ > now) at = std::min(at, change_not_before_);
  at = std::min({at, patience_ends(), troubles_.wake_at()});
  for (const auto& [id, worker] : pool_.workers()) {
    at = std::min({at, worker.stop_at, worker.gone_by});
    if (must_become_ready(worker)) at = std::min(at, worker.since + spec_.deadlines.start_timeout);
  }
  return at;
}

// ---------------------------------------------------------------- hosts

void Supervisor::on(const SlotsChanged& changed, Time now) {
  pool_.set_slots(changed.slots);
  scaler_.offers_changed(offers(
      launcher::reachable_sizes(changed.slots_by_host, spec_.unit, spec_.limits, spec_.start),
      changed.slots, changed.prices, spec_.price));
  const int within = launcher::slots_within(changed.slots_by_host, spec_.limits.max_hosts);
  int most = spec_.limits.max > 0 ? spec_.limits.max : within;
  if (spec_.limits.max_hosts > 0) most = std::min(most, within);
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

void Supervisor::on(const HostUp& up, Time now) {
  Host& host = hosts_[up.host];
  host.asked = host.up = true;
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
  liveness_.host_gone(down.host);
  const std::string name = wiring_.host_name(down.host);
  record("host_down",
         {{"host", name}, {"reason", phase_ == Phase::closing ? "the job is over" : down.reason}});
  std::vector<WorkerId> lost;
  for (const auto& [id, worker] : pool_.workers())
    if (worker.slot.host == down.host) lost.push_back(id);
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
  for (const WorkerId id : lost)
    worker_ended(id, {exit_code::below_minimum, 0, how, dead_by, true}, now);
  if (nothing)
    end(exit_code::nothing_started,
        fmt::format("nothing could be started{}: {}: {}",
                    failed_hosts_.size() > 1 ? "; the last" : "", name, down.reason),
        now);
}

void Supervisor::on(const FromHost& from, Time now) {
  if (!hosts_.contains(from.host)) return;
  liveness_.host_heard(from.host, now);
  std::visit([&](const auto& report) { hear(from.host, report, now); }, from.report);
}

void Supervisor::hear(HostId host, const wire::WorkerStarted& started, Time) {
  Worker* worker = pool_.find(started.worker);
  if (!worker) return;
  worker->running = true;
  record("worker_started", {{"worker", static_cast<std::int64_t>(started.worker.value)},
                            {"host", wiring_.host_name(host)},
                            {"slot", static_cast<std::int64_t>(worker->slot.index)},
                            {"pid", static_cast<std::int64_t>(started.pid)}});
}

void Supervisor::hear(HostId, const wire::StartFailed& failed, Time now) {
  worker_ended(failed.worker, {failed.code, 0, "did not start: " + failed.reason, now}, now);
}

void Supervisor::hear(HostId host, const wire::WorkerExited& exited, Time now) {
  if (!exited.host_ends.empty())
    return worker_ended(exited.worker,
                        {.code = exit_code::below_minimum,
                         .how = fmt::format("was stopped with its host {} ({})",
                                            wiring_.host_name(host), exited.host_ends),
                         .dead_by = now,
                         .by_host = true},
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

// ---------------------------------------------------------------- workers

void Supervisor::on(const FromWorker& from, Time now) {
  Worker* worker = pool_.find(from.worker);
  if (!worker) return;
  liveness_.worker_heard(from.worker, now);
  liveness_.host_heard(worker->slot.host, now);
  library_ = worker->joined = true;
  if (const auto* ready = std::get_if<wire::Ready>(&from.letter)) {
    worker->ready = true;
    batch_said(ready->train);
    work_.asked(ready->train);
    if (phase_ == Phase::trained && membership_.is_member(from.worker))
      happen(Happening::train_again);
  } else if (const auto* sample = std::get_if<wire::Sample>(&from.letter)) {
    liveness_.worker_sample(from.worker, *sample, now);
    progress(sample->step);
    const autoscaler::WorkerSample report = to_report(from.worker, *sample);
    stragglers_.observe(report, now);
    if (spec_.shares_by_speed && !unsettled_) shares_.observe(report);
    if (const auto round = scaler_.observe(report, now)) {
      shares_.observe(*round);
      report_sample(*round);
    }
  } else if (const auto* committed = std::get_if<wire::Committed>(&from.letter)) {
    progress(committed->step);
    pool_.slot_works(worker->slot);
  } else if (const auto* done = std::get_if<wire::Done>(&from.letter)) {
    progress(done->step);
  } else if (const auto* leave = std::get_if<wire::Leave>(&from.letter)) {
    progress(leave->step);
  }
  tell(rendezvous::Letter{from.worker, from.letter}, now);
}

void Supervisor::progress(Step step) {
  if (step <= newest_) return;
  newest_ = step;
  failures_ = 0;
  work_.committed(step);
}

void Supervisor::check_liveness(Time now) {
  for (const auto& verdict : liveness_.check(now)) {
    if (const auto* host = std::get_if<rendezvous::HostSilent>(&verdict)) {
      out_.push_back(KillAgent{host->host});
      on(HostDown{host->host, host->reason}, now);
    } else if (std::holds_alternative<rendezvous::EverybodySilent>(verdict)) {
      say(Tone::error, fmt::format("no host is heard any more; is the network of this machine up? "
                                   "Waiting for {} in all",
                                   to_text(spec_.deadlines.lease)));
    } else if (ending()) {
      continue;
    } else if (const auto* silent = std::get_if<rendezvous::WorkerSilent>(&verdict)) {
      rendezvous::Fence fence{silent->worker, silent->reason};
      on(fence, now);
      tell(rendezvous::WorkerGone{silent->worker, silent->reason, never}, now);
    } else if (const auto* stuck = std::get_if<rendezvous::ReductionStuck>(&verdict)) {
      tell(rendezvous::Letter{stuck->worker, wire::Broken{stuck->generation, stuck->reason}}, now);
    }
  }
}

bool Supervisor::watches_stragglers() const {
  return spec_.stragglers != StragglerAction::off && !ending() && membership_.running();
}

void Supervisor::check_stragglers(Time now) {
  if (!watches_stragglers()) return;
  for (const auto& one : stragglers_.confirmed(now)) {
    const Worker* worker = pool_.find(one.worker);
    if (!worker) continue;
    const bool replace =
        spec_.stragglers == StragglerAction::replace && pool_.has_substitute(target_, now);
    const std::string what = fmt::format("{} computes at {:.2f} of the others' speed, for {}",
                                         name_of(one.worker), one.score, to_text(one.slow_for));
    record("straggler", {{"worker", static_cast<std::int64_t>(one.worker.value)},
                         {"host", wiring_.host_name(worker->slot.host)},
                         {"score", one.score},
                         {"slow_for_s", seconds(one.slow_for)},
                         {"action", std::string(replace ? "replace" : "report")}});
    if (!replace) {
      say(Tone::info, what + (spec_.stragglers == StragglerAction::report
                                  ? ""
                                  : "; no other slot is free to replace it"));
      continue;
    }
    const Duration time = pool_.quarantine(worker->slot, now);
    say(Tone::info,
        fmt::format("{}; it is replaced, and its slot left alone for {}", what, to_text(time)));
    told_ = move_reason_ = what;
  }
}

// ---------------------------------------------------------------- people

void Supervisor::on(const Interrupt& interrupt, Time now) {
  const char* name = ::sigabbrev_np(interrupt.signal);
  if (interrupted_) {
    say(Tone::error, fmt::format("SIG{} again: stopping at once", name));
    for (const auto& [id, worker] : pool_.workers())
      stop_worker(id, SIGKILL, Duration::zero(), now);
    deadline_ = std::min(deadline_, now + std::chrono::seconds(1));
    return;
  }
  interrupted_ = true;
  if (ending()) return;
  say(Tone::info, fmt::format("SIG{}: stopping gently within {}; once more stops at once", name,
                              to_text(spec_.deadlines.grace)));
  const int number = interrupt.signal == SIGINT ? SIGINT : SIGTERM;
  end(exit_code::signal_base + number, fmt::format("stopped by SIG{}", name), now);
}

void Supervisor::on(const PassSignal& pass, Time) {
  for (const auto& [id, worker] : pool_.workers())
    out_.push_back(Order{worker.slot.host, wire::SignalWorker{id, pass.signal}});
}

void Supervisor::on(const Scale& scale, Time) {
  target_ = std::max(scale.size, spec_.limits.min);
  if (spec_.limits.max > 0) target_ = std::min(target_, spec_.limits.max);
  move_reason_ = fmt::format("asked for {} workers", scale.size);
}

// ---------------------------------------------------------------- reporting

std::string Supervisor::name_of(WorkerId id) const {
  const auto worker = pool_.workers().find(id);
  if (worker == pool_.workers().end()) return fmt::format("worker {}", id.value);
  const SlotId slot = worker->second.slot;
  const auto rank = ranks_.find(id);
  const std::string place = fmt::format("{} slot {}", wiring_.host_name(slot.host), slot.index);
  if (rank == ranks_.end()) return fmt::format("worker {} ({})", id.value, place);
  return fmt::format("worker {} (rank {}, {})", id.value, rank->second, place);
}

void Supervisor::report_sample(const autoscaler::WorldSample& round) {
  std::vector<std::pair<std::string, Value>> fields{
      {"generation", static_cast<std::int64_t>(round.generation.value)},
      {"step", round.step.value},
      {"samples_per_s", round.samples_per_s},
      {"global_batch", round.batch},
      {"step_ms", milliseconds(round.step_time)},
      {"compute_ms", milliseconds(round.compute_time)},
      {"least_compute_ms", milliseconds(round.least_compute)},
      {"most_compute_ms", milliseconds(round.most_compute)}};
  if (round.noise) {
    fields.push_back({"noise_scale", round.noise->scale()});
    fields.push_back({"scale_invariant_steps", round.noise->scale_invariant_steps});
  }
  record("sample", std::move(fields));
}

void Supervisor::record(std::string name, std::vector<std::pair<std::string, Value>> fields) {
  out_.push_back(Record{Event{std::move(name), std::move(fields)}});
}

}  // namespace elasticrun::job
