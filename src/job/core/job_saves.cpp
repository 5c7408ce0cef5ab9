// When the state is saved, what follows when it is or cannot be, and which save a job goes on from
// (job.hpp).
#include <fmt/format.h>

#include <csignal>

#include "base/text.hpp"
#include "job/core/job.hpp"

namespace elasticrun::job {
namespace {

std::string size_text(std::uint64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < 10'000'000) return fmt::format("{:.0f} kB", b / 1e3);
  return bytes < 10'000'000'000 ? fmt::format("{:.0f} MB", b / 1e6)
                                : fmt::format("{:.1f} GB", b / 1e9);
}

}  // namespace

// ---------------------------------------------------------------- going on from one

// False: this worker cannot be used, or the job cannot go on from what it was given.
bool Job::fits(WorkerId id, const wire::Ready& ready, Time now) {
  const bool first = !membership_.ever_formed();
  if (!ready.train.save_trouble.empty()) {
    const std::string why =
        fmt::format("--save {}: {}", requests_.saves.folder(), ready.train.save_trouble);
    if (first)
      end(course::Cause::save_unusable,
          fmt::format("{}: {}", name_of(workers_.find(id)->slot.host), why), now);
    else
      give_up_worker(id, why, now);
    return false;
  }
  const std::string misfit = requests_.saves.kept().ready(ready.train);
  if (first && !misfit.empty()) end(course::Cause::save_unusable, misfit, now);
  return misfit.empty() || !first;
}

// Tells membership what a world begins with when nobody holds the state.
void Job::tell_restore(Time now) {
  if (const wire::saved::Save* const save = requests_.saves.kept().newest())
    tell(rendezvous::Restore{save->path, StepId(save->manifest.step)}, now);
}

void Job::hear(WorkerId id, const wire::Unreadable& unreadable, Time now) {
  const wire::saved::Save* const save = requests_.saves.kept().newest();
  if (!save || save->path != unreadable.save) return;
  out_.log(report::LogLevel::error, fmt::format("{} is not used, says {}: {}", unreadable.save,
                                                name_of(id), unreadable.reason));
  out_.record("save_refused", {{"path", unreadable.save}, {"reason", unreadable.reason}});
  requests_.saves.kept().refuse(unreadable.save);
  if (requests_.saves.kept().newest()) return tell_restore(now);
  end(course::Cause::save_unusable,
      fmt::format("no save in {} can be read; remove them to begin afresh",
                  requests_.saves.folder()),
      now);
}

// ---------------------------------------------------------------- saving

// A save while the job runs waits until nothing else is asked of the world; that of a stop does
// not.
bool Job::may_ask_for_save() const {
  if (ending_.ending() || !requests_.saves.is(course::SaveState::wanted)) return false;
  return requests_.saves.stopping() ? membership_.steps()
                                    : membership_.running() && !requests_.changes.under_way();
}

Time Job::saves_at() const {
  if (!requests_.saves.on() || ending_.ending()) return never;
  return may_ask_for_save() ? at_once : requests_.saves.wake_at(membership_.steps());
}

void Job::look_at_saves(Time now) {
  course::Saves& saves = requests_.saves;
  if (saves.limit_is_near(now))
    stop({spec_.saving.limited_by,
          fmt::format("stopped before {} ({})", spec_.saving.limited_by,
                      to_text(spec_.saving.time_limit)),
          exit_code::signal_base + SIGTERM, true},
         now);
  if (saves.overdue(now))
    give_up_save(fmt::format("it is not whole within --save-timeout {}",
                             to_text(spec_.deadlines.save_timeout)),
                 now);
  saves.look_if_due(membership_.steps(), now);
  if (!may_ask_for_save()) return;
  const wire::Save save = saves.ask();
  rendezvous::ToMembers order{membership_.members(), save};
  on(order, now);
}

void Job::hear(WorkerId id, const wire::Saved& part, Time now) {
  course::Saves& saves = requests_.saves;
  if (part.number != saves.number() || ending_.ending()) return;
  if (!part.error.empty()) return give_up_save(fmt::format("{}: {}", name_of(id), part.error), now);
  if (!saves.written(part)) return;
  const wire::saved::Save* const before = saves.kept().newest();
  out_.add(SealSave{saves.number(), saves.manifest(spec_.argv), before ? before->path : ""});
}

void Job::on(const SealSave::Answer& sealed, Time now) {
  course::Saves& saves = requests_.saves;
  if (sealed.number != saves.number() || !saves.is(course::SaveState::sealing)) return;
  if (!sealed.path) return give_up_save(sealed.path.error().text, now);
  const auto report = saves.sealed(*sealed.path, sealed.manifest, now);
  const wire::saved::Manifest& saved = report.manifest;
  out_.record("saved", {{"path", *sealed.path},
                        {"step", saved.step},
                        {"epoch", saved.epoch},
                        {"bytes", static_cast<std::int64_t>(report.bytes)},
                        {"held_ms", milliseconds(report.held)},
                        {"took_ms", milliseconds(report.took)},
                        {"stop", report.last}});
  concerns_staff(now);  // a change may have waited for it
  const std::string what = fmt::format("saved step {} in {}: {}, {}", saved.step,
                                       to_text(report.took), *sealed.path, size_text(report.bytes));
  progress(StepId(saved.step), now);
  if (!report.last) {
    out_.log(report::LogLevel::info,
             fmt::format("{}; it held a step up for {}", what, to_text(report.held)));
    return tell_restore(now);
  }
  out_.log(report::LogLevel::info, what);
  end_saved(fmt::format("{}, and the state is saved: the same command goes on from step {}",
                        saves.why_stop().why, saved.step),
            now);
}

void Job::give_up_save(const std::string& why, Time now) {
  course::Saves& saves = requests_.saves;
  const bool stopping = saves.stopping();
  forget_save();
  saves.give_up(now);
  concerns_staff(now);
  const wire::saved::Save* const newest = saves.kept().newest();
  const std::string left = newest ? fmt::format("the newest whole save is {} (step {})",
                                                newest->path, newest->manifest.step)
                                  : "there is no whole save";
  out_.record("save_failed", {{"reason", why}});
  if (stopping)
    return end(
        course::Cause::signalled,
        fmt::format("{}, and the state is not saved: {}; {}", saves.why_stop().why, why, left), now,
        saves.why_stop().exit_code);
  out_.log(report::LogLevel::error,
           fmt::format("the state is not saved: {}; {}, and training goes on", why, left));
}

// The files of a save that nobody waits for any more.
void Job::forget_save() {
  if (requests_.saves.number() > 0) out_.add(DropSave{requests_.saves.number()});
}

// ---------------------------------------------------------------- stopping

// The user, a batch system or the time limit wants the job to end: with the state saved, where it
// is to be saved and there is something new to save.
void Job::stop(course::Saves::Stop why, Time now) {
  course::Saves& saves = requests_.saves;
  if (ending_.ending() || saves.stopping()) return;
  const auto resumed = saves.kept().resumed_from();
  if (resumed && summary_.newest() <= *resumed)
    return end(course::Cause::no_progress,
               fmt::format("{}, without a new step since it went on from step {}", why.why,
                           resumed->value),
               now);
  const bool trains = ending_.runs() || ending_.is(course::Phase::short_of);
  if (!saves.on() || !trains || summary_.newest() <= StepId(0)) {
    out_.log(report::LogLevel::info,
             fmt::format("{}: stopping gently within {}; once more stops at once", why.what,
                         to_text(spec_.deadlines.grace)));
    return end(course::Cause::signalled, why.why, now, why.exit_code);
  }
  saves.stop(std::move(why), now);
  out_.log(report::LogLevel::info,
           fmt::format("{}: saving the state within {}, then stopping; INT or TERM once more stops "
                       "at once, without it",
                       saves.why_stop().what, to_text(saves.left(now))));
}

}  // namespace elasticrun::job
