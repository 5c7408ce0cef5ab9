// Programs without the library, whose workers are restarted all together, as under torchrun
// (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/text.hpp"
#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {

workers::RunEnd Job::run_end(WorkerId id, const workers::Worker& worker, const WorkerEnd& end,
                             Time now) const {
  const bool clean = end.code == 0 && end.signal == 0;
  const bool by_term = end.signal == SIGTERM || end.code == exit_code::signal_base + SIGTERM;
  const bool time_was_up = now + course::Ending::killing_time >= worker.deadline;
  return {.worker = name_of(id),
          .how = worker.trouble.empty() ? end.how : worker.trouble,
          .error_ns = end.error_ns,
          .code = end.code,
          .signal = end.signal,
          .with_host = end.with_host,
          .told = worker.expected(),
          .obeyed = worker.expected() && (clean || by_term || time_was_up),
          .hopeless = end.never_ran};
}

// A worker of a plain program has ended, and was not told to.
void Job::plain_ended(WorkerId id, const workers::Worker& worker, const WorkerEnd& end, Time now) {
  workers::RunEnd made = run_end(id, worker, end, now);
  workers_.erase(id);
  slots_.retire(worker.slot);  // it has done what it had to do, unless all start again
  if (end.code == 0 && end.signal == 0) return;
  const std::string what = fmt::format("{} {}", made.worker, made.how);
  // Those that still run may turn out to be the cause.
  if (!restarts_.may_follow(made) && (made.hopeless || workers_.empty()))
    return this->end(course::Cause::worker_failed, what, now,
                     end.signal != 0 ? exit_code::signal_base + end.signal : end.code);
  restarts_.ended(std::move(made));
  end_run(what, now);
}

// run_ended follows when the last worker has gone.
void Job::end_run(const std::string& why, Time now) {
  first_.end_run();
  restarts_.run_ends(now);
  if (workers_.empty()) return;
  out_.log(report::LogLevel::info,
           fmt::format("{}; ending {}{}", why, counted(workers_.rows().size(), "worker"),
                       restarts_.will_follow() ? " before all start again" : ""));
  for (const auto& [id, worker] : workers_.rows())
    stop_worker(id, SIGTERM, spec_.deadlines.grace, now);
}

void Job::run_ended(Time now) {
  const workers::Restarts::Verdict verdict = restarts_.judge();
  std::string why = verdict.reason;
  if (!verdict.victims.empty()) why += "; " + verdict.victims;
  if (!verdict.again) {
    if (restarts_.max() > 0 && restarts_.count() == restarts_.max())
      why += fmt::format("; --max-restarts {} is used up", restarts_.max());
    return end(course::Cause::worker_failed, std::move(why), now, verdict.exit_code);
  }
  out_.record("restarted", {{"restarts", static_cast<std::int64_t>(restarts_.count())},
                            {"counted", verdict.counted},
                            {"reason", why}});
  if (verdict.counted)
    out_.log(report::LogLevel::error,
             fmt::format("restart {} of {}: {}", restarts_.count(), restarts_.max(), why));
  else if (!verdict.planned)  // that was said when the run was ended
    out_.log(report::LogLevel::info, "starting again: " + why);
  slots_.unretire();
  first_.choose(first_choice(now));
  concerns_staff(now);
}

// It stands, and says what it does: a policy can judge it.
bool Job::run_is_settled() const { return first_.begun() && restarts_.makes_progress(); }

void Job::hear(HostId host, const wire::agent::Progress& made, Time now) {
  if (!plain() || !first_.begun() || !workers_.runs_on(made.worker, host)) return;
  if (restarts_.progressed(now)) {
    sizing_.run_begins(static_cast<int>(first_.order().size()), restarts_.cost(), now);
    tell_unsettled(now);
  }
  sizing_.progress(made, now, out_);
}

// Looks whether another run would have more workers, or must do without some: after a decision when
// all hosts for it are there, otherwise when the hosts have settled.
void Job::keep_run(Time now) {
  const std::vector<SlotId>& here = first_.order();
  const bool whole = workers_.rows().size() == here.size();  // else the program comes to its end
  if (!restarts_.resizable() || !whole) return restarts_.nothing_better();
  const auto wanted = workers::wanted_slots(slots_, workers_, sizing_.target(), now);
  ask_for_hosts(wanted);
  std::vector<SlotId> next;
  std::ranges::copy_if(wanted, std::back_inserter(next),
                       [&](SlotId slot) { return hosts_.up(slot.host); });
  const bool all_are_there = std::ranges::all_of(
      wanted, [&](SlotId slot) { return hosts_.up(slot.host) || hosts_.failed(slot.host); });
  const auto lost =
      std::ranges::count_if(here, [&](SlotId slot) { return !slots_.contains(slot); });
  if ((lost == 0 && next.size() == here.size()) || too_few(next)) {
    if (all_are_there) requests_.changes.because("");  // the decision leads to no restart
    return restarts_.nothing_better();
  }
  const bool decided = all_are_there && !requests_.changes.why().empty();
  const bool in_a_hurry =
      std::ranges::any_of(here, [&](SlotId slot) { return hosts_.leaving(slot.host); });
  restarts_.could_have(next, now, in_a_hurry ? Duration::zero() : spec_.deadlines.settle);
  if (now < restarts_.wake_at() && !decided) return;
  std::string why = decided ? requests_.changes.why()
                            : fmt::format("there is room for {} in place of {}",
                                          counted(next.size(), "worker"), here.size());
  if (lost > 0) why = fmt::format("{} of {} slots may no longer be used", lost, here.size());
  requests_.changes.because("");
  restarts_.hosts_changed(why);
  end_run(why, now);
}

}  // namespace elasticrun::job
