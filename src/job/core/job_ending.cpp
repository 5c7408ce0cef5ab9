// How the job ends (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "job/core/job.hpp"

namespace elasticrun::job {

void Job::end(course::Cause cause, std::string words, Time now, int code) {
  if (ending_.ending()) return;
  ending_.begin(cause, code, std::move(words),
                now + spec_.deadlines.grace + std::chrono::seconds(2));
  for (const auto& [id, worker] : workers_.rows())
    stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
}

// The state is saved: the workers learn it from their library, and end by themselves. Those that
// are in no call of it are told by a signal.
void Job::end_saved(std::string words, Time now) {
  const Duration grace = spec_.deadlines.grace;
  ending_.begin(course::Cause::saved, exit_code::stopped_saved, std::move(words),
                now + 2 * grace + std::chrono::seconds(2));
  std::vector<WorkerId> elsewhere;
  for (const auto& [id, worker] : workers_.rows())
    if (!worker.expected() && !membership_.is_training(id)) elsewhere.push_back(id);
  tell(rendezvous::Dissolve{"the state is saved, and the job ends"}, now);
  for (const WorkerId id : elsewhere) stop_worker(id, SIGTERM, grace, now);
}

// True: ends the job, because all members ended by the same mistake, except those that left or were
// stopped. Workers that took their place would make that mistake, too.
bool Job::ended_by_mistake(const char* what, Time now) {
  const bool all = std::ranges::all_of(
      workers_.rows(), [](const auto& row) { return !row.second.rank || row.second.departed(); });
  const auto mistake = all ? failures_.mistake() : std::nullopt;
  if (mistake) end(course::Cause::same_mistake, mistake->words + what, now, mistake->exit_code);
  return mistake.has_value();
}

Time Job::troubles_at() const {
  const Time at = watch_.troubles.wake_at();
  return at != never && ending_.ending() ? at_once : at;
}

void Job::tell_troubles(Time now) {
  for (std::string& line : watch_.troubles.tell(now, ending_.ending()))
    out_.log(report::LogLevel::error, std::move(line));
}

void Job::tell_all_troubles(Time now) {
  for (std::string& line : watch_.troubles.tell(now, true))
    out_.log(report::LogLevel::error, std::move(line));
}

// Does what is due by time, and what follows when the last worker or the last agent has gone.
void Job::wind_up(Time now) {
  if (now >= ending_.patience_ends(spec_.deadlines.minimum_timeout))
    end(course::Cause::workers_too_few,
        fmt::format("fewer than {} workers for {}{}", minimum(),
                    to_text(spec_.deadlines.minimum_timeout),
                    requests_.saves.on() ? "; " + requests_.saves.kept().words() : ""),
        now);
  if (ending_.is(course::Phase::trained)) stop_idle(now);
  if (ending_.is(course::Phase::stopping) && now >= ending_.deadline()) {
    // These agents cannot kill their workers, or are silent: their hosts are given up.
    for (const HostId host : hosts_.live()) out_.add(KillAgent{host});
    workers_.clear();
  }
  if (workers_.empty()) workers_gone(now);
  if (ending_.is(course::Phase::closing)) close(now);
}

// Stops the workers that remain when training is over and no worker is in a world. A worker that
// was given up is killed already, and its end is a failure: it may have had more to do.
void Job::stop_idle(Time now) {
  if (membership_.size() > 0 || workers_.unstopped() == 0) return;
  for (const auto& [id, worker] : workers_.rows())
    if (!worker.departed() && !worker.doomed())
      stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
}

void Job::workers_gone(Time now) {
  if (first_.state() == workers::Start::ending && !ending_.ending()) {
    run_ended(now);
    if (!ending_.ending()) return;  // another run begins
  }
  // Until all first workers have been started, more may come though none is there.
  if (!ending_.ending() && !ending_.is(course::Phase::trained) && !first_.all_started()) return;
  if (ending_.over()) return;
  const bool elastic = first_.program() == workers::Program::with_library;
  const bool some_wanted = target() > 0 || slots_.all().empty();
  const bool more_to_come = elastic && some_wanted && !slots_.all_retired();
  if (ending_.is(course::Phase::starting) && slots_.all().empty())
    wait_for_more(too_few({}).value(), now);
  const auto& failure = ending_.kept();
  if (failure && (ending_.is(course::Phase::trained) || (elastic && !more_to_come)))
    end(course::Cause::worker_failed, failure->words, now, failure->exit_code);
  if (elastic && !more_to_come && !ending_.is(course::Phase::short_of))
    ending_.happen(course::PhaseEvent::stop);
  if (ending_.is(course::Phase::starting) && more_to_come) return;
  ending_.happen(course::PhaseEvent::workers_gone);
  if (!ending_.is(course::Phase::closing)) return;
  ending_.set_deadline(now + course::Ending::closing_time);
  for (const HostId host : hosts_.live()) {
    if (hosts_.up(host)) {
      out_.add(Order{host, wire::agent::Shutdown{0}});
    } else {
      out_.add(KillAgent{host});
      hosts_.went(host);
    }
  }
}

void Job::close(Time now) {
  if (now >= ending_.deadline())
    for (const HostId host : hosts_.live()) {
      out_.add(KillAgent{host});
      hosts_.went(host);
    }
  if (!hosts_.none_live()) return;
  ending_.happen(course::PhaseEvent::agents_gone);
  ending_.set_deadline(never);
  tell_all_troubles(now);
  const bool all_well = ending_.words().empty();
  out_.record("job_finished",
              {{"exit_code", static_cast<std::int64_t>(ending_.exit_code())},
               {"reason", all_well ? std::string("all workers finished") : ending_.words()},
               {"steps", std::max<std::int64_t>(summary_.newest().value, 0)},
               {"wall_s", seconds(now - summary_.began())},
               {"worker_s", summary_.worker_time()}});
  const bool stayed = ending_.exit_code() == exit_code::ok && sizing_.settled() &&
                      summary_.size() == sizing_.target();
  for (std::string& line : summary_.story(stayed ? sizing_.last_reason() : ""))
    out_.log(report::LogLevel::info, std::move(line));
  const std::string done = summary_.words(now);
  out_.add(Finish{ending_.exit_code(),
                  all_well || done.empty() ? ending_.words() + done : ending_.words() + "; " + done,
                  ending_.because(course::Cause::saved) && requests_.saves.why_stop().time_is_up,
                  requests_.saves.stopping() && requests_.saves.why_stop().if_preempted,
                  ending_.exit_code() == exit_code::ok && summary_.has_trained()});
}

}  // namespace elasticrun::job
