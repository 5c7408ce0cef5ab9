// Messages of workers, and how workers are stopped (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "job/core/job.hpp"
#include "job/core/workers/claims.hpp"

namespace elasticrun::job {

void Job::on(const FromWorker& from, Time now) {
  const workers::Worker* worker = workers_.find(from.worker);
  if (!worker || worker->is(workers::WorkerState::dying)) return;
  watch_.liveness.worker_heard(from.worker, now);
  watch_.liveness.host_heard(worker->slot.host, now);
  watch_.suspects.heard(worker->slot.host, now);
  if (!check_claims(from, now)) return;
  // The first message shows that this is no plain program, so all slots may be used.
  if (plain()) concerns_staff(now);
  first_.joined();
  // Its first process was in train, and has ended: below a shell, or by execve(2).
  const bool joins = std::holds_alternative<wire::Join>(from.message);
  if (joins && membership_.is_training(from.worker) && !ending_.ending())
    return lose_worker(from.worker, "ended in training, and another process took its place", now);
  if (const auto* ready = std::get_if<wire::Ready>(&from.message);
      ready && !fits(from.worker, *ready, now))
    return;
  if (std::holds_alternative<wire::Leave>(from.message)) {
    watch_.liveness.worker_gone(from.worker);  // these are its last words
    // It has freed its job, and may take its time, unless the others go on.
    if (ending_.is(course::Phase::trained)) return workers_.frees_job(from.worker);
  }
  std::visit([&](const auto& message) { hear(from.worker, message, now); }, from.message);
  tell(rendezvous::WorkerMessage{from.worker, from.message}, now);
}

// False: the message claims what cannot be true. Its worker is given up, unless its end is
// expected.
bool Job::check_claims(const FromWorker& from, Time now) {
  const Time began = summary_.began();
  const workers::Possible possible = workers::possible_after(
      now - (began == Time{} ? now : began),
      requests_.saves.kept().resumed_from().value_or(StepId(0)), membership_.generation());
  const std::string claim = workers::false_claim(from.message, possible);
  if (claim.empty()) return true;
  if (!ending_.ending() && !workers_.find(from.worker)->expected())
    lose_worker(from.worker, "reported what cannot be: " + claim, now);
  return false;
}

void Job::hear(WorkerId id, const wire::Ready& ready, Time now) {
  workers_.ready(id, now);
  sizing_.ready(spec_, ready.train);
  if (!membership_.is_member(id)) return;  // for others, membership reports BecameReady
  if (ending_.is(course::Phase::trained)) train_again(now);
  concerns_staff(now);
}

void Job::train_again(Time now) {
  ending_.happen(course::PhaseEvent::train_again);
  ending_.trains_again();
  summary_.trains_again();
  for (const WorkerId id : workers_.without_job())
    tell(rendezvous::WorkerMessage{id, wire::Leave{"the program closed its job"}}, now);
}

void Job::hear(WorkerId id, const wire::Sample& sample, Time now) {
  watch_.liveness.worker_sample(id, sample, now);
  progress(sample.step, now);
  // It has left the world, but its on_epoch still runs (saving, say), so it gets more time.
  if (workers_.find(id)->is(workers::WorkerState::leaving) && sample.phase == "epoch")
    workers_.set_deadline(id, now + spec_.deadlines.grace);
  if (sizing_.sample(spec_, id, sample, now, out_)) staff_time_.round_is_whole();
}

void Job::hear(WorkerId id, const wire::Committed& committed, Time now) {
  progress(committed.step, now);
  if (slots_.forget_failures(workers_.find(id)->slot)) concerns_staff(now);
}

void Job::hear(WorkerId, const wire::Answer& answer, Time now) { progress(answer.committed, now); }
void Job::hear(WorkerId, const wire::Done& done, Time now) { progress(done.step, now); }
void Job::hear(WorkerId, const wire::Leave& leave, Time now) { progress(leave.step, now); }

void Job::hear(WorkerId id, const wire::Broken& broken, Time now) {
  hear_complaints(id, broken.generation, broken.complaints, now);
}
void Job::hear(WorkerId id, const wire::PrepareFailed& failed, Time now) {
  hear_complaints(id, failed.generation, failed.complaints, now);
}

// A worker whose peer on another host has hung up may be the first to know that this host is dead.
// Peers also hang up if their world is cancelled.
void Job::hear_complaints(WorkerId id, Generation generation,
                          const std::vector<wire::Complaint>& complaints, Time now) {
  if (membership_.aborting() || !membership_.under_way(generation)) return;
  const HostId own = workers_.find(id)->slot.host;
  for (const wire::Complaint& complaint : complaints)
    if (const workers::Worker* peer = workers_.find(complaint.about);
        peer && complaint.hung_up && peer->slot.host != own)
      watch_.suspects.accused(peer->slot.host, complaint.reason, now);
  // Before membership gets the message: the host is to blame, not the worker that reports it.
  watch_hosts(now);
}

void Job::hear(WorkerId, const wire::StepSamples& samples, Time) {
  std::string text = fmt::format("in epoch {}", samples.epoch);
  for (std::size_t rank = 0; rank < samples.by_rank.size(); ++rank)
    if (!samples.by_rank[rank].empty())
      text += fmt::format(", rank {} had samples {}", rank, samples.by_rank[rank]);
  failures_.samples(std::move(text));
}

void Job::hear(WorkerId, const wire::Diverged& diverged, Time now) {
  std::vector<std::string> odd;
  std::vector<std::int64_t> workers;
  for (const WorkerId worker : diverged.odd) {
    odd.push_back(name_of(worker));
    workers.push_back(worker.value);
  }
  const auto verdict = failures_.states_differ(diverged, odd, spec_.verify_state);
  if (!verdict) return;
  out_.record("state_differs",
              {{"generation", static_cast<std::int64_t>(diverged.generation.value)},
               {"step", diverged.step.value},
               {"workers", std::move(workers)},
               {"where", diverged.where},
               {"repaired", !verdict->ends && !diverged.mixed}});
  if (verdict->ends) return end(course::Cause::states_differ, verdict->words, now);
  out_.log(report::LogLevel::error, verdict->words);
}

// ---------------------------------------------------------------- stopping them

void Job::stop_worker(WorkerId id, std::int32_t signal, Duration grace, Time now) {
  const workers::Worker* const worker = workers_.find(id);
  if (!worker) return;
  const Time gone_by = now + grace + course::Ending::killing_time;
  const bool told_before = worker->is(workers::WorkerState::stopping) || worker->doomed();
  if (!told_before) workers_.turn(id, workers::WorkerTurn::stopped);
  workers_.set_deadline(id, told_before ? std::min(worker->deadline, gone_by) : gone_by);
  out_.add(Order{worker->slot.host, wire::agent::StopWorker{id, signal, grace.count()}});
}

// The worker is out of the world; it ends by itself, or is stopped when its time is over.
void Job::dismiss(WorkerId id, Time now) {
  const workers::Worker* const worker = workers_.find(id);
  if (!worker || worker->departed() || worker->doomed()) return;
  workers_.turn(id, workers::WorkerTurn::dismissed);
  workers_.set_deadline(id, now + spec_.deadlines.grace);
}

// Kills a worker that did not answer, is silent or hangs, or cannot compute any more.
void Job::give_up_worker(WorkerId id, const std::string& why, Time now) {
  if (!workers_.give_up(id, why)) return;
  workers_.set_deadline(id, never);
  stop_worker(id, SIGKILL, Duration::zero(), now);
  concerns_staff(now);
}

// Forces a worker out that cannot be a member any more.
void Job::fence(WorkerId id, const std::string& why, Time now) {
  const workers::Worker* worker = workers_.find(id);
  if (!worker || !worker->trouble.empty()) return;
  out_.record("fenced", {{"worker", static_cast<std::int64_t>(id.value)},
                         {"host", name_of(worker->slot.host)},
                         {"reason", why}});
  give_up_worker(id, why, now);
}

// Gives a worker up; the world goes on without it at once.
void Job::lose_worker(WorkerId id, const std::string& why, Time now) {
  fence(id, why, now);
  tell(rendezvous::WorkerGone{id, why, never}, now);
}

// Deals with workers that are not ready in time, did not end by themselves, or survive a kill.
void Job::act_on_worker_deadlines(Time now) {
  while (const auto due = workers_.due(now)) {
    const WorkerId id = *due;
    const workers::Worker& worker = *workers_.find(id);
    if (worker.is(workers::WorkerState::leaving)) {
      stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
    } else if (worker.starts()) {
      const bool must_be_ready =
          !plain() && !ending_.ending() && !ending_.is(course::Phase::trained);
      if (must_be_ready)
        give_up_worker(
            id,
            fmt::format("was not ready to train within {}", to_text(spec_.deadlines.start_timeout)),
            now);
      else
        workers_.set_deadline(id, now + spec_.deadlines.start_timeout);
    } else {
      // A device driver or a disk that does not answer keeps a process from dying. Nothing more can
      // be done about it from here, and the job does not wait for it.
      const bool dies = worker.is(workers::WorkerState::dying);
      if (dies)  // what it had started has not been killed yet
        out_.add(Order{worker.slot.host, wire::agent::StopWorker{id, SIGKILL, 0}});
      out_.log(report::LogLevel::error,
               fmt::format("{} {} and is still there: it hangs in the kernel of its host, and the "
                           "job continues without waiting for it",
                           name_of(id), dies ? "has died" : "was killed"));
      const HostId host = worker.slot.host;
      worker_ended(id, {.signal = SIGKILL, .how = "cannot be killed", .dead_by = never}, now);
      workers_.leave_stuck(id, host);
    }
  }
}

}  // namespace elasticrun::job
