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
  options.transfer_timeout = spec.deadlines.transfer_timeout;
  return options;
}

rendezvous::LivenessOptions liveness_options(const Deadlines& deadlines) {
  return {deadlines.agent_timeout, deadlines.lease, deadlines.hung, deadlines.epoch_timeout,
          deadlines.transfer_timeout};
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
  check_suspects(now);
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
  at = std::min({at, patience_ends(), troubles_.wake_at(), suspects_.wake_at()});
  for (const auto& [id, worker] : pool_.workers()) {
    at = std::min({at, worker.stop_at, worker.gone_by});
    if (must_become_ready(worker)) at = std::min(at, worker.since + spec_.deadlines.start_timeout);
  }
  return at;
}

// ---------------------------------------------------------------- workers

void Supervisor::on(const FromWorker& from, Time now) {
  Worker* worker = pool_.find(from.worker);
  if (!worker) return;
  liveness_.worker_heard(from.worker, now);
  liveness_.host_heard(worker->slot.host, now);
  suspects_.heard(worker->slot.host, now);
  library_ = worker->joined = true;
  if (const auto* ready = std::get_if<wire::Ready>(&from.letter)) {
    worker->ready = true;
    batch_said(ready->train);
    work_.asked(ready->train);
    uncounted_.ready(ready->train);
    if (phase_ == Phase::trained && membership_.is_member(from.worker))
      happen(Happening::train_again);
  } else if (const auto* sample = std::get_if<wire::Sample>(&from.letter)) {
    hear_sample(from.worker, *sample, now);
    // One that has left the world, but is still saving what it has left behind.
    if (worker->stop_at != never && sample->phase == "epoch")
      worker->stop_at = now + spec_.deadlines.grace;
  } else if (const auto* committed = std::get_if<wire::Committed>(&from.letter)) {
    progress(committed->step);
    pool_.slot_works(worker->slot);
  } else if (const auto* answer = std::get_if<wire::Answer>(&from.letter)) {
    progress(answer->committed);
  } else if (const auto* done = std::get_if<wire::Done>(&from.letter)) {
    progress(done->step);
  } else if (const auto* leave = std::get_if<wire::Leave>(&from.letter)) {
    progress(leave->step);
  }
  if (const auto* broken = std::get_if<wire::Broken>(&from.letter))
    hear_complaints(broken->complaints, now);
  if (const auto* samples = std::get_if<wire::StepSamples>(&from.letter))
    hear_step_samples(*samples);
  if (const auto* diverged = std::get_if<wire::Diverged>(&from.letter))
    hear_divergence(*diverged, now);
  if (const auto* failed = std::get_if<wire::PrepareFailed>(&from.letter))
    hear_complaints(failed->complaints, now);
  tell(rendezvous::Letter{from.worker, from.letter}, now);
}

void Supervisor::hear_sample(WorkerId worker, const wire::Sample& sample, Time now) {
  liveness_.worker_sample(worker, sample, now);
  progress(sample.step);
  const autoscaler::WorkerSample report = to_report(worker, sample);
  stragglers_.observe(report, now);
  if (spec_.shares_by_speed && !unsettled_) shares_.observe(report);
  if (const auto round = scaler_.observe(report, now)) {
    shares_.observe(*round);
    report_sample(*round);
  }
  if (uncounted_.hear(sample) && scaler_.policy() != "fixed")
    say(Tone::error,
        fmt::format("the program's own loop does not say how many samples a step has, so policy {} "
                    "cannot measure it and the size stays as it is; call elasticrun_samples "
                    "(C++: job.samples) before each commit",
                    scaler_.policy()));
}

// All members say it; it is reported once a world.
void Supervisor::hear_divergence(const wire::Diverged& diverged, Time now) {
  const auto verdict =
      divergences_.hear(diverged, spec_.verify_state,
                        [this](WorkerId worker) { return name_of(worker); });
  if (!verdict) return;
  std::vector<std::int64_t> workers;
  for (const WorkerId worker : diverged.odd) workers.push_back(worker.value);
  record("state_differs", {{"generation", static_cast<std::int64_t>(diverged.generation.value)},
                           {"step", diverged.step.value},
                           {"workers", std::move(workers)},
                           {"where", diverged.where},
                           {"repaired", !verdict->ends && !diverged.mixed}});
  if (verdict->ends) return end(exit_code::diverged, verdict->words, now);
  say(Tone::error, verdict->words);
}

void Supervisor::hear_step_samples(const wire::StepSamples& samples) {
  std::string text = fmt::format("in epoch {}", samples.epoch);
  for (std::size_t rank = 0; rank < samples.by_rank.size(); ++rank)
    if (!samples.by_rank[rank].empty())
      text += fmt::format(", rank {} had samples {}", rank, samples.by_rank[rank]);
  poison_.samples(std::move(text));
}

void Supervisor::progress(Step step) {
  if (step <= newest_) return;
  newest_ = step;
  poison_.committed(step);
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
      tell(rendezvous::Stuck{stuck->worker, stuck->generation, stuck->reason}, now);
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

// Whatever has not been heard meanwhile blames nobody. Leases have run all the same: agents count
// by clocks of their own.
void Supervisor::on(const StoodStill& stood, Time now) {
  if (stood.time < spec_.deadlines.agent_timeout / 2) return;
  standstill_ = fmt::format("this program stood still for {} (stopped, or its machine was)",
                            to_text(stood.time));
  const bool longer = stood.time >= spec_.deadlines.lease;
  say(Tone::error,
      longer ? fmt::format("{}, longer than --lease {}: hosts have stopped their workers meanwhile",
                           standstill_, to_text(spec_.deadlines.lease))
             : standstill_);
  if (!longer) standstill_.clear();
  liveness_.stood_still(stood.time, now);
  suspects_.stood_still(stood.time);
  pool_.stood_still(stood.time);
  tell(rendezvous::StoodStill{stood.time}, now);
}

void Supervisor::on(const Suspend&, Time) {
  say(Tone::error,
      "Ctrl-Z is not followed: the hosts stop their workers when this program stands still; to "
      "have "
      "the terminal back, start it with & or in tmux");
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
  const auto own = ranks_.find(id);
  const auto rank = own != ranks_.end() ? own->second : membership_.rank_of(id);
  const std::string place = fmt::format("{} slot {}", wiring_.host_name(slot.host), slot.index);
  if (!rank) return fmt::format("worker {} ({})", id.value, place);
  return fmt::format("worker {} (rank {}, {})", id.value, *rank, place);
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
