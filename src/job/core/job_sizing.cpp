// Which size and which plan the job should have now (job.hpp).
#include <fmt/format.h>

#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {

Time Job::size_at() const {
  const bool stands = plain() ? spec_.resizable && run_is_settled() : membership_.running();
  return stands && !ending_.ending() ? sizing_.wake_at() : never;
}

void Job::decide_size(Time now) {
  const auto why = sizing_.decide(spec_, now, out_);
  if (!why) return;
  summary_.told(*why);
  requests_.changes.because(*why);
  concerns_staff(now);
}

Time Job::stragglers_at() const {
  const bool looked_for = spec_.stragglers != StragglerAction::off;
  return looked_for && membership_.running() && !ending_.ending() ? sizing_.stragglers_wake_at()
                                                                  : never;
}

void Job::check_stragglers(Time now) {
  for (const auto& one : sizing_.stragglers(now)) {
    const workers::Worker* worker = workers_.find(one.worker);
    if (!worker) continue;
    const bool replace = replaces_stragglers(now);
    const std::string what = fmt::format("{} computes at {:.2f} of the others' speed, for {}",
                                         name_of(one.worker), one.score, to_text(one.slow_for));
    out_.record("straggler", {{"worker", static_cast<std::int64_t>(one.worker.value)},
                              {"host", name_of(worker->slot.host)},
                              {"score", one.score},
                              {"slow_for_s", seconds(one.slow_for)},
                              {"action", std::string(replace ? "replace" : "report")}});
    if (!replace) {
      out_.log(report::LogLevel::info, what + (spec_.stragglers == StragglerAction::report
                                                   ? ""
                                                   : "; no other slot is free to replace it"));
      continue;
    }
    const Duration time = slots_.quarantine(worker->slot, now);
    out_.log(
        report::LogLevel::info,
        fmt::format("{}; it is replaced, and its slot left alone for {}", what, to_text(time)));
    summary_.told(what);
    requests_.changes.because(what);
    concerns_staff(now);
  }
}

bool Job::replaces_stragglers(Time now) const {
  return spec_.stragglers == StragglerAction::replace &&
         workers::has_substitute(slots_, workers_, sizing_.target(), now);
}

// True: one member of the next world must compute nothing and keep the state, because the step may
// kill the others. A program with its own loop cannot be made to compute nothing.
bool Job::needs_keeper() const {
  return failures_.poison().suspected() && sizing_.counts_samples();
}

// A step has killed who computed it. The next world may form before anybody looks at the staff.
void Job::step_kills(Time now) {
  if (failures_.poison().certain())
    return end(course::Cause::step_kills, failures_.poison().words(sizing_.may_be_between_epochs()),
               now);
  if (needs_keeper()) tell_wanted(slots_wanted(spec_.spares, now), now);
}

// Why the same members should have another plan; nothing while anything else is under way.
std::optional<std::string> Job::better_plan(Time now) {
  if (!membership_.running() || !sizing_.settled()) return {};
  if (!membership_.first_is_training()) return {};
  return sizing_.better_plan(static_cast<int>(membership_.size()), needs_keeper(),
                             replaces_stragglers(now), requests_.changes.why(), now);
}

}  // namespace elasticrun::job
