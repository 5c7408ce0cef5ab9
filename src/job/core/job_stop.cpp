// How a job stops before its end: with the state saved, if it is to be saved and is new (job.hpp).
#include <fmt/format.h>

#include "job/core/job.hpp"

namespace elasticrun::job {

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
  const bool between = between_calls(), stands = no_step_comes();
  const bool has_trained =
      ending_.runs() || ending_.is(course::Phase::short_of) || ending_.is(course::Phase::trained);
  if (!saves.on() || !has_trained || summary_.newest() <= StepId(0)) {
    const char* const nothing = !saves.on() ? ""
                                : plain()   ? " (--save: no worker has joined through the library)"
                                            : " (--save: no step has been reported)";
    out_.log(report::LogLevel::info,
             fmt::format("{}: stopping gently within {}{}; INT or TERM once more stops at once",
                         why.what, to_text(spec_.deadlines.grace), nothing));
    return end(course::Cause::signalled, why.why, now, why.exit_code);
  }
  if (!stands && saves.is(course::SaveState::asked)) drop_save(saves.number());
  saves.stop(std::move(why), !stands, now);
  if (stands && saves.kept().newest_step() >= summary_.newest()) return stop_saved(now);
  if (all_have_left())
    return out_.log(report::LogLevel::info,
                    fmt::format("{}: the workers have left, and hold the state: the job ends when "
                                "they have, within {}; INT or TERM once more stops at once",
                                saves.why_stop().what, to_text(saves.left(now))));
  const bool waits = between && saves.is(course::SaveState::wanted);
  out_.log(report::LogLevel::info,
           fmt::format("{}: saving the state within {}{}, then stopping; INT or TERM once more "
                       "stops at once, without it",
                       saves.why_stop().what, to_text(saves.left(now)),
                       waits ? ", in the next step, unless the program ends before" : ""));
}

void Job::stop_saved(Time now) {
  const course::Saves& saves = requests_.saves;
  end_saved(fmt::format("{}, and the state is saved: the same command resumes from step {}",
                        saves.why_stop().why, saves.kept().newest_step().value),
            now);
}

// The newest state cannot be saved. Where an older one has been since the start, the same command
// gets further than this job did.
void Job::stop_unsaved(const std::string& why, Time now) {
  course::Saves& saves = requests_.saves;
  if (saves.is(course::SaveState::asked)) drop_save(saves.number());
  const auto& [what, reason, code, time_is_up, if_preempted] = saves.why_stop();
  const StepId newest = saves.kept().newest_step();
  if (newest >= summary_.newest()) return stop_saved(now);
  if (newest > saves.kept().resumed_from().value_or(StepId(0)))
    return end(course::Cause::saved,
               fmt::format("{}, and the state of step {} is not saved: {}; the same command "
                           "resumes from step {}",
                           reason, summary_.newest().value, why, newest.value),
               now);
  end(course::Cause::signalled,
      fmt::format("{}, and the state is not saved: {}; {}", reason, why, saves.kept().words()), now,
      code);
}

// The job is to stop, and no worker holds a state that its saves lack.
bool Job::nothing_to_save() const {
  const course::Saves& saves = requests_.saves;
  return saves.stopping() && saves.is(course::SaveState::wanted) && !membership_.state_is_held() &&
         !all_have_left();
}

// Training is over, and the processes that have left may still write what they have learned.
bool Job::all_have_left() const {
  return ending_.is(course::Phase::trained) && !membership_.state_is_held();
}

}  // namespace elasticrun::job
