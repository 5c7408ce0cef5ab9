// Events from the user and the controller itself, and the table of timed checks (job.hpp).
#include "job/core/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace elasticrun::job {
namespace {

constexpr Duration silence_max = std::chrono::seconds(3);  // then missing hosts are logged

rendezvous::MembershipOptions membership_options(const JobSpec& spec) {
  rendezvous::MembershipOptions options;
  options.minimum = spec.limits.min;
  options.abort_timeout = spec.deadlines.abort_timeout;
  options.prepare_timeout = spec.deadlines.prepare_timeout;
  options.transfer_timeout = spec.deadlines.transfer_timeout;
  return options;
}

rendezvous::Liveness::Options liveness_options(const Deadlines& deadlines) {
  return {.agent_timeout = deadlines.agent_timeout,
          .worker_timeout = deadlines.lease,
          .standstill = deadlines.standstill_timeout,
          .hung = deadlines.hung,
          .epoch_timeout = deadlines.epoch_timeout,
          .lost_link = deadlines.transfer_timeout};
}

}  // namespace

Result<std::unique_ptr<Job>> Job::make(const JobSpec& spec) {
  auto sizing = course::Sizing::make(spec);
  if (!sizing) return sizing.error();
  return std::unique_ptr<Job>(new Job(spec, std::move(*sizing)));
}

Job::Job(const JobSpec& spec, course::Sizing sizing)
    : spec_(spec),
      watch_{.liveness = rendezvous::Liveness(liveness_options(spec.deadlines)),
             .unused = hosts::UnusedHosts(spec.slurm_shrink)},
      restarts_(spec.max_restarts.value_or(0), spec.resizable),
      sizing_(std::move(sizing)),
      requests_{{}, course::Saves(spec)},
      membership_(membership_options(spec)),
      failures_(spec.max_restarts.value_or(10)) {}

std::vector<JobAction> Job::step(const JobEvent& event, Time now) {
  if (ending_.is(course::Phase::ended)) return {};  // what comes now concerns no one
  if (summary_.began() == Time{}) {
    first_.tell_missing_at(now + silence_max);
    requests_.saves.times().job_began(now);
    tell_restore(now);
  }
  summary_.count_time(workers_.rows().size(), now);
  std::visit([&](const auto& e) { on(e, now); }, event);
  for (const auto& [at, look] : looks)
    if (now >= (this->*at)()) (this->*look)(now);
  wind_up(now);
  return out_.take();
}

Time Job::wake_at(Time now) const {
  Time at = std::min(ending_.deadline(), ending_.patience_ends(spec_.deadlines.minimum_timeout));
  for (const Look& look : looks) at = std::min(at, (this->*look.at)());
  return std::max(at, now);
}

// ---------------------------------------------------------------- what is due by time

// An event makes a look due at once, or later. Each event goes through the table once: an earlier
// look that a later one makes due comes with the next Tick. A look must move its own time on, or
// Ticks would never end.
constexpr std::array<Job::Look, 8> Job::looks{{
    {&Job::watch_at, &Job::watch_hosts},  // gives hosts and workers up, before what follows from it
    {&Job::stragglers_at, &Job::check_stragglers},
    {&Job::size_at, &Job::decide_size},  // all samples are in, or the time the policy waits for
    {&Job::membership_at, &Job::tick_membership},
    {&Job::worker_deadlines_at, &Job::act_on_worker_deadlines},
    {&Job::saves_at, &Job::look_at_saves},  // before a change is proposed, which waits for a save
    {&Job::staff_at, &Job::look_at_staff},  // events for slots and workers; pauses; changes
    {&Job::troubles_at, &Job::tell_troubles},
}};

void Job::look_at_staff(Time now) {
  if (staff_time_.due(now)) return staff(now);
  if (staff_time_.take_round() && may_propose(now)) consider_plan(now);
  tell_unsettled(now);
}

// ---------------------------------------------------------------- the user

void Job::on(const Interrupt& interrupt, Time now) {
  const char* name = ::sigabbrev_np(interrupt.signal);
  // A batch system sends its own signal first and TERM when the time is up: only TERM, INT or HUP
  // again means that the user will not wait.
  const bool asks = spec_.saving.stop_signal == interrupt.signal;
  if (!asks && !ending_.interrupt(now)) {
    out_.log(report::LogLevel::error, fmt::format("SIG{} again: stopping at once", name));
    if (requests_.saves.stopping())
      end(course::Cause::signalled,
          fmt::format("stopped by SIG{}, before the state was saved", name), now,
          requests_.saves.why_stop().exit_code);
    for (const auto& [id, worker] : workers_.rows())
      stop_worker(id, SIGKILL, Duration::zero(), now);
    ending_.set_deadline(std::min(ending_.deadline(), now + std::chrono::seconds(1)));
    return;
  }
  if (!asks) requests_.saves.user_wants_the_end(now);
  stop_by(interrupt.signal, "", asks, false, now);
}

// `to`: which processes got the signal, if not this one.
void Job::stop_by(int signal, const char* to, bool time_is_up, bool if_preempted, Time now) {
  if (ending_.ending() || requests_.saves.stopping()) return;
  const char* const name = ::sigabbrev_np(signal);
  stop({fmt::format("SIG{}{}", name, to), fmt::format("stopped by SIG{}", name),
        exit_code::signal_base + (signal == SIGINT ? SIGINT : SIGTERM), time_is_up, if_preempted},
       now);
}

// A batch system signals the steps of a job, and not always the script in which this program runs.
// It sends TERM to them when it wants the nodes back, and the script gets it when they are taken.
void Job::hear(HostId host, const wire::agent::StopAsked& asked, Time now) {
  if (ending_.ending() || requests_.saves.stopping()) return;
  if (!asked.of_job) {
    for (const SlotId slot : slots_.all())
      if (slot.host == host) slots_.host_failed(slot, now);
    out_.add(Order{host, wire::agent::Shutdown{spec_.deadlines.orphan_grace.count()}});
    return concerns_staff(now);
  }
  const bool asks = asked.signal == spec_.saving.stop_signal;
  if (!asks && asked.signal != SIGTERM && asked.signal != SIGINT) return;  // it is for the program
  stop_by(asked.signal, " to the agents", asks || asked.signal == SIGTERM, !asks, now);
}

void Job::on(const PassSignal& pass, Time) {
  for (const auto& [id, worker] : workers_.rows())
    out_.add(Order{worker.slot.host, wire::agent::SignalWorker{id, pass.signal}});
}

void Job::on(const Suspend&, Time) {
  out_.log(report::LogLevel::error,
           "Ctrl-Z is not followed: training would pause; to have the terminal back, start this "
           "program with & or in tmux");
}

void Job::on(const Scale& scale, Time now) {
  int target = std::max(scale.size, spec_.limits.min);
  if (spec_.limits.max > 0) target = std::min(target, spec_.limits.max);
  sizing_.set_target(target + slots_.retired());
  requests_.changes.because(fmt::format("asked for {} workers", scale.size));
  concerns_staff(now);
}

void Job::on(const Advised& advised, Time) { sizing_.advised(spec_, advised.output, out_); }

// ---------------------------------------------------------------- the controller itself

// No host or worker is blamed for silence during that time. Leases have run out all the same,
// because agents time them by their own clocks; they keep their workers until heartbeats come back.
void Job::on(const StoodStill& stood, Time now) {
  if (stood.time < spec_.deadlines.agent_timeout / 2) return;
  const std::string what = fmt::format(
      "elasticrun was stopped for {} (or its machine was suspended)", to_text(stood.time));
  const bool longer = stood.time >= spec_.deadlines.lease;
  out_.log(report::LogLevel::error,
           longer ? fmt::format("{}, longer than --lease {}: training has paused meanwhile", what,
                                to_text(spec_.deadlines.lease))
                  : what);
  ending_.stood_still(longer ? what : "");
  watch_.liveness.stood_still(stood.time, now);
  watch_.suspects.stood_still(stood.time);
  workers_.stood_still(stood.time);
  tell(rendezvous::StoodStill{stood.time}, now);
}

// ---------------------------------------------------------------- names

std::string Job::name_of(WorkerId id) const {
  const workers::Worker* worker = workers_.find(id);
  if (!worker) return fmt::format("worker {}", id.value);
  const auto rank = worker->rank ? worker->rank : membership_.rank_of(id);
  const std::string place =
      fmt::format("{} slot {}", name_of(worker->slot.host), worker->slot.index);
  if (!rank) return fmt::format("worker {} ({})", id.value, place);
  return fmt::format("worker {} (rank {}, {})", id.value, *rank, place);
}

}  // namespace elasticrun::job
