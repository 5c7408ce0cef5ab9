// When the state is saved, what follows when it is or cannot be, and which save a job goes on from
// (job.hpp).
#include <fmt/format.h>

#include <algorithm>
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
  const std::string misfit = requests_.saves.ready(ready.train);
  // What a program trains on it may say only in the world that has gone on from the save.
  const bool begins = first || summary_.newest() <= requests_.saves.kept().resumed_from();
  if (begins && !misfit.empty()) end(course::Cause::save_unusable, misfit, now);
  return misfit.empty() || !begins;
}

// Tells membership what a world begins with when no worker holds the state.
void Job::tell_restore(Time now) {
  if (const wire::saved::Save* const save = requests_.saves.kept().newest())
    tell(rendezvous::Restore{save->path}, now);
}

void Job::hear(WorkerId id, const wire::Unreadable& unreadable, Time now) {
  const wire::saved::Save* const save = requests_.saves.kept().newest();
  if (!save || save->path != unreadable.save) return;
  // A disk or a file server may have failed for this worker alone, or for a moment.
  if (unreadable.of_reader && !requests_.saves.kept().count_failed_reading(unreadable.generation))
    return lose_worker(id, fmt::format("could not read a save: {}", unreadable.reason), now);
  out_.log(report::LogLevel::error, fmt::format("{} is not used, says {}: {}", unreadable.save,
                                                name_of(id), unreadable.reason));
  out_.record("save_refused", {{"path", unreadable.save}, {"reason", unreadable.reason}});
  requests_.saves.kept().refuse(unreadable.save);
  if (requests_.saves.kept().newest()) return tell_restore(now);
  end(unreadable.of_reader ? course::Cause::state_lost : course::Cause::save_unusable,
      fmt::format("no save in {} could be read; start the job again if that can be mended, or give "
                  "another folder to begin afresh",
                  requests_.saves.folder()),
      now);
}

// ---------------------------------------------------------------- saving

// Steps are made, in which the members can agree on a save.
bool Job::members_step() const {
  return membership_.steps() && !ending_.is(course::Phase::trained);
}

bool Job::no_step_comes() const { return between_calls() || ending_.is(course::Phase::short_of); }

// A member is in no call of train, so none makes a step.
bool Job::between_calls() const {
  if (ending_.is(course::Phase::trained)) return true;
  return std::ranges::any_of(membership_.members(),
                             [&](WorkerId id) { return !membership_.is_training(id); });
}

// A save while the job runs waits until nothing else is asked of the world; that of a stop does
// not.
bool Job::may_ask_for_save() const {
  if (ending_.ending() || !requests_.saves.is(course::SaveState::wanted)) return false;
  if (membership_.idle_holder()) return true;
  return requests_.saves.stopping() ? membership_.steps()
                                    : membership_.running() && !requests_.changes.under_way();
}

Time Job::saves_at() const {
  const course::Saves& saves = requests_.saves;
  if (!saves.on() || ending_.ending()) return never;
  if (nothing_to_save()) return at_once;
  const Time at = saves.wake_at(members_step());
  return may_ask_for_save() ? std::min(at, saves.ask_at()) : at;
}

void Job::look_at_saves(Time now) {
  course::Saves& saves = requests_.saves;
  if (saves.limit_is_near(now))
    stop({spec_.saving.limited_by,
          fmt::format("stopped before {} ({} after the start)", spec_.saving.limited_by,
                      to_text(spec_.saving.time_limit)),
          exit_code::signal_base + SIGTERM, true},
         now);
  if (saves.overdue(now)) save_is_overdue(now);
  if (ending_.ending()) return;
  if (now >= saves.times().doubt_at()) doubt_saves();
  if (nothing_to_save()) return stop_unsaved("no worker holds the state", now);
  saves.look_if_due(members_step(), now);
  ask_for_save(now);
}

void Job::doubt_saves() {
  requests_.saves.times().doubted();
  if (plain())
    out_.log(report::LogLevel::info,
             "--save has no effect so far: no worker has joined through the library; a program "
             "without it keeps its own checkpoints");
}

void Job::ask_for_save(Time now) {
  course::Saves& saves = requests_.saves;
  if (!may_ask_for_save() || now < saves.ask_at()) return;
  const std::optional<WorkerId> alone = membership_.idle_holder();
  rendezvous::ToMembers order{alone ? std::vector{*alone} : membership_.members(),
                              saves.ask(now, alone.has_value())};
  on(order, now);
}

void Job::save_is_overdue(Time now) {
  course::Saves& saves = requests_.saves;
  const bool stood = members_step() && saves.waits_for_step(2 * spec_.deadlines.sample_interval);
  if (stood && !saves.stopping()) return saves.wait_longer(now);
  if (!saves.stopping())
    return give_up_save(fmt::format("it is not whole within --save-timeout {}",
                                    to_text(spec_.deadlines.save_timeout)),
                        now);
  stop_unsaved(stood             ? "no step has ended since then"
               : all_have_left() ? "the workers have left, and did not end in time"
                                 : "it did not become whole in time",
               now);
}

void Job::hear(WorkerId id, const wire::Saved& part, Time now) {
  course::Saves& saves = requests_.saves;
  if (ending_.ending()) return;
  // It is one that was given up meanwhile: what there is of it now goes, too.
  if (part.number != saves.number() || !saves.is(course::SaveState::asked))
    return drop_save(part.number);
  if (!part.error.empty()) return give_up_save(fmt::format("{}: {}", name_of(id), part.error), now);
  if (!saves.agrees(part))
    return give_up_save(fmt::format("the state source of {} does not list the same arrays as that "
                                    "of another worker",
                                    name_of(id)),
                        now);
  if (!saves.written(part, now)) return;
  // Until it is whole or given up, no world begins with an older one.
  tell(rendezvous::Restore{}, now);
  const wire::saved::Save* const before = saves.kept().newest();
  out_.add(SealSave{saves.number(), saves.manifest(spec_.argv), before ? before->path : ""});
}

void Job::on(const SealSave::Answer& sealed, Time now) {
  course::Saves& saves = requests_.saves;
  if (sealed.number != saves.number() || !saves.is(course::SaveState::sealing)) return;
  if (!sealed.path) return give_up_save(sealed.path.error().text, now);
  const bool lost = saves.lost().has_value();
  const bool no_step = no_step_comes() || lost;
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
  if (ending_.ending()) return out_.log(report::LogLevel::info, what);
  progress(StepId(saved.step), now);
  // A worker that saved alone may have stepped since: then the stop needs another save.
  const bool newest = saves.kept().newest_step() >= summary_.newest();
  if (newest && (report.last || (saves.stopping() && no_step))) {
    out_.log(report::LogLevel::info, what);
    return stop_saved(now);
  }
  const char* const whom = between_calls() ? "the end of training" : "a step";
  out_.log(report::LogLevel::info, report.alone ? what
                                                : fmt::format("{}; it held {} up for {}", what,
                                                              whom, to_text(report.held)));
  if (lost && ended_by_mistake("", now)) return;
  tell_restore(now);
}

void Job::give_up_save(const std::string& why, Time now) {
  course::Saves& saves = requests_.saves;
  drop_save(saves.number());
  out_.record("save_failed", {{"reason", why}});
  concerns_staff(now);
  const std::optional<std::string> lost = saves.lost();
  tell_restore(now);
  if (!lost && saves.try_again(now))
    return out_.log(report::LogLevel::error,
                    fmt::format("the state is not saved: {}; trying again", why));
  if (saves.stopping()) return stop_unsaved(why, now);
  saves.give_up(now);
  if (lost && ended_by_mistake(": state lost", now)) return;
  if (lost && !saves.kept().newest()) return state_lost(*lost, why, now);
  out_.log(report::LogLevel::error,
           fmt::format("the state is not saved: {}; {}, and training continues", why,
                       saves.kept().words()));
}

// What is there, and may still come, of a save that nobody waits for any more; 0: of none.
void Job::drop_save(std::int64_t number) {
  if (number > 0) out_.add(DropSave{number});
}

}  // namespace elasticrun::job
