// What the end of a worker means for the job (job.hpp).
#include <fmt/format.h>

#include <csignal>

#include "job/core/job.hpp"

namespace elasticrun::job {

void Job::worker_ended(WorkerId id, const WorkerEnd& end, Time now) {
  const workers::Worker* found = workers_.find(id);
  if (!found) {
    // Membership may be waiting for its end, if no other worker of its world has answered.
    if (workers_.erase_stuck(id)) tell(rendezvous::WorkerGone{id, end.how, end.dead_by}, now);
    return;
  }
  const workers::Worker worker = *found;
  if (worker.is(workers::WorkerState::dying)) {  // what it means is settled
    workers_.erase(id);
    concerns_staff(now);
    return tell(rendezvous::WorkerGone{id, end.how, end.dead_by}, now);
  }
  const std::string why = worker.trouble.empty() ? end.how : worker.trouble;
  const bool clean = end.code == 0 && end.signal == 0;
  const bool expected = worker.expected() || ending_.ending();
  out_.record("worker_exited", {{"worker", static_cast<std::int64_t>(id.value)},
                                {"host", name_of(worker.slot.host)},
                                {"code", static_cast<std::int64_t>(end.code)},
                                {"signal", static_cast<std::int64_t>(end.signal)},
                                {"expected", expected || (clean && !membership_.is_training(id))},
                                {"reason", why}});
  if (first_.state() == workers::Start::ending)
    restarts_.ended(run_end(id, worker, end, now));
  else if (!expected && plain())
    plain_ended(id, worker, end, now);
  else if (!expected)
    judge_end(id, worker, end, now);
  strike_off(id, end, now);
  watch_.liveness.worker_gone(id);
  concerns_staff(now);
  tell(rendezvous::WorkerGone{id, why, end.dead_by}, now);
}

// A worker that still dies keeps its slot: its memory, its GPU and its ports are not free yet.
// Where the end is judged this comes before what follows from it; a second call does nothing.
void Job::strike_off(WorkerId id, const WorkerEnd& end, Time now) {
  if (!end.still_dies) return workers_.erase(id);
  if (workers_.dies(id, end.how))
    workers_.set_deadline(id, now + course::Ending::taking_apart_time);
}

// Decides what follows from the end of a worker that was not expected to end.
void Job::judge_end(WorkerId id, const workers::Worker& worker, const WorkerEnd& end, Time now) {
  const auto& [code, signal, how, error_ns, dead_by, with_host, never_ran, still_dies] = end;
  const std::string name = name_of(id);
  const bool member = worker.rank.has_value();
  const bool training = membership_.is_training(id);
  const bool in_step = training && membership_.may_step(id);
  const bool clean = code == 0 && signal == 0;
  const bool given_up = !worker.trouble.empty();  // by the job: the program did not cause its end
  const bool own_doing = !given_up && !with_host;
  const std::string why = given_up ? worker.trouble : how;
  strike_off(id, end, now);
  if (worker.is(workers::WorkerState::left)) {
    if (clean) return;
    const std::string what = fmt::format("{} {} after it had left", name, why);
    const bool replaceable = !worker.left_in_call && membership_.ever_formed();
    if (!replaceable || ending_.is(course::Phase::trained))
      keep_failure(what, end, replaceable);
    else
      out_.log(report::LogLevel::error, what);  // the others train again
    if (!replaceable) return;
    slots_.unretire(worker.slot);
    return void(slots_.failed(worker.slot, now));
  }
  if (member) failures_.member_ended({name, why, code, signal, own_doing});
  const bool first_steps = !membership_.ever_formed() && own_doing;
  if (ending_.is(course::Phase::trained)) {
    // The others may still evaluate, or write what they have learned; or they train again, with
    // another worker in this slot. A worker that was no member had nothing to do.
    if (clean) return slots_.retire(worker.slot);
    if (member) keep_failure(fmt::format("{} {}", name, why), end, true);
    slots_.failed(worker.slot, now);
    return;
  }
  if (first_steps) {
    // There is no state from which others could go on: a failure ends the job, as under torchrun.
    if (!clean)
      this->end(course::Cause::worker_failed, fmt::format("{} {}", name, why), now,
                end.exit_code());
    return slots_.retire(worker.slot);  // it has done what it had to do
  }
  if (clean && !training && worker.was_ready()) return slots_.retire(worker.slot);
  const std::string what = fmt::format(
      "{} {}", name, clean && training ? "exited with 0 in mid-training without leave()" : why);
  failure(worker.slot, member, what, with_host ? report::LogLevel::detail : report::LogLevel::error,
          now);
  // A SIGKILL is not the program's doing: it comes from the kernel, for memory, or from a user.
  if (own_doing && in_step && signal != SIGKILL) {
    failures_.died_in_step(what, membership_.stepping());
    step_kills(now);
  }
  // The others have waited for this worker until its deadline, and would wait as long for the next
  // one in its slot. A second failure gives the slot a pause, so they go on without it.
  if (given_up && !worker.was_ready()) slots_.failed(worker.slot, now);
}

// The others are not disturbed, but the job does not end with 0.
void Job::keep_failure(const std::string& what, const WorkerEnd& end, bool replaced_in_training) {
  const auto level = end.with_host ? report::LogLevel::detail : report::LogLevel::error;
  out_.log(level, fmt::format("{}; the job ends with {}{}", what, end.exit_code(),
                              replaced_in_training ? ", unless it trains again" : ""));
  ending_.keep({end.exit_code(), what, replaced_in_training});
}

void Job::failure(SlotId slot, bool member, const std::string& what, report::LogLevel level,
                  Time now) {
  const Duration pause = slots_.failed(slot, now);
  if (!failures_.count(member)) {
    // The line of the world that forms without a member reports the rest.
    if (member || !slots_.contains(slot)) return out_.log(level, what);
    const std::string next = pause == Duration::zero() ? "at once" : "in " + to_text(pause);
    return out_.log(level, fmt::format("{}; next try {}", what, next));
  }
  out_.log(level, what);
  out_.record("restart_refused",
              {{"failures", static_cast<std::int64_t>(failures_.in_a_row())}, {"reason", what}});
  end(course::Cause::too_many_failures,
      fmt::format("{} failures without a new step between, more than --max-restarts {}; the last: "
                  "{}",
                  failures_.in_a_row(), failures_.restarts_max(), what),
      now);
}

}  // namespace elasticrun::job
