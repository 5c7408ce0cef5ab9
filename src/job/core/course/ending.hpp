// The life of a job (phase.hpp) and every way in which it can end.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/exit_code.hpp"
#include "base/time.hpp"
#include "job/core/course/phase.hpp"

namespace elasticrun::job::course {

enum class Cause {
  finished,
  worker_failed,
  same_mistake,
  signalled,
  saved,
  no_progress,
  save_unusable,
  nothing_started,
  hosts_too_few,
  workers_too_few,
  state_lost,
  too_many_failures,
  step_kills,
  states_differ,
};

// Stands for the exit code of the worker, as a shell reports it, or that of the signal that came.
inline constexpr int own_code = -1;

struct CauseRow {
  Cause cause;
  int exit_code;
  std::string_view when;
};

inline constexpr std::array causes{
    CauseRow{Cause::finished, exit_code::ok, "all workers have ended with 0"},
    CauseRow{Cause::worker_failed, own_code,
             "a worker of a plain program failed, or one before the first world, after it had "
             "left, or after the end of training"},
    CauseRow{Cause::same_mistake, own_code, "all members ended by the same mistake"},
    CauseRow{Cause::signalled, own_code, "INT (130), or TERM or HUP (both 143)"},
    CauseRow{Cause::saved, exit_code::stopped_saved, "stopped on request, with the state saved"},
    CauseRow{Cause::no_progress, exit_code::budget_spent,
             "stopped on request, without a new step since the save that it began with"},
    CauseRow{Cause::save_unusable, exit_code::usage,
             "the folder of --save, or the save in it, cannot be used"},
    CauseRow{Cause::nothing_started, exit_code::nothing_started, "no host could be used"},
    CauseRow{Cause::hosts_too_few, exit_code::usage,
             "the hosts that were named have fewer slots than the minimum"},
    CauseRow{Cause::workers_too_few, exit_code::below_minimum,
             "fewer workers than the minimum for --minimum-timeout"},
    CauseRow{Cause::state_lost, exit_code::below_minimum, "no worker is left that holds the state"},
    CauseRow{Cause::too_many_failures, exit_code::budget_spent,
             "more failures in a row than --max-restarts"},
    CauseRow{Cause::step_kills, exit_code::budget_spent,
             "one step has killed whoever computed it, three times"},
    CauseRow{Cause::states_differ, exit_code::diverged,
             "two members' states differ, and neither is known to be right"},
};

constexpr const CauseRow& row_of(Cause cause) { return causes[static_cast<std::size_t>(cause)]; }

class Ending {
 public:
  // The longest time from SIGKILL to the end of a process, on a healthy host.
  static constexpr Duration killing_time = std::chrono::seconds(10);
  // The same from a death that nobody asked for. The kernel takes some 12 GB of memory apart in a
  // second, so this is enough for 360 GB.
  static constexpr Duration taking_apart_time = std::chrono::seconds(30);
  // From the same death until no thread of the process runs its program any more: each is kept from
  // it as soon as its processor takes an interrupt.
  static constexpr Duration last_instructions_time = std::chrono::seconds(1);
  // How long the job waits for silent agents while agents end.
  static constexpr Duration closing_time = std::chrono::seconds(5);

  Phase phase() const { return phase_; }
  void happen(PhaseEvent happening) { phase_ = next(phase_, happening); }
  bool is(Phase phase) const { return phase_ == phase; }
  // Workers are told to end, or have ended.
  bool ending() const { return is_ending(phase()); }
  // The job does not wait for any worker any more.
  bool over() const { return is(Phase::closing) || is(Phase::ended); }
  // There is a world, or one is being formed.
  bool runs() const { return is(Phase::training) || is(Phase::reforming); }

  // `code` is used if the cause has no exit code of its own. The first call counts; later ones
  // change nothing.
  void begin(Cause cause, int code, std::string words, Time deadline);
  bool because(Cause cause) const { return ending() && cause_ == cause; }
  int exit_code() const { return exit_code_; }
  // Why the job ends; empty: it is not ending, or all workers finished.
  const std::string& words() const { return words_; }

  // A worker that trains no more failed: a job that is not ended otherwise ends with this failure.
  struct Failure {
    int exit_code = 0;
    std::string words;
    bool replaced_in_training = false;  // it counts only if no member trains again
  };
  // Keeps the first failure that counts in any case, or else the first one.
  void keep(Failure failure);
  void trains_again();
  const std::optional<Failure>& kept() const { return kept_; }

  // The deadline of the phase stopping, then of closing.
  Time deadline() const { return deadline_; }
  void set_deadline(Time at) { deadline_ = at; }

  // The job has fewer workers than its minimum and waits for more, since short_since(): from the
  // start on, or after losses.
  bool short_of_workers() const { return short_since_ != never; }
  void short_since(Time now) { short_since_ = std::min(short_since_, now); }
  void enough() { short_since_ = never; }
  // When the job gives up waiting; never: it is not waiting.
  Time patience_ends(Duration patience) const;

  // A text for the user: the controller was stopped for longer than the lease, which may be the
  // cause of a loss that follows. Empty: it was not, or a world has formed since.
  void stood_still(std::string words) { standstill_ = std::move(words); }
  const std::string& standstill() const { return standstill_; }

  // The user wants the job to end. False: once more. What comes within a second is a copy of the
  // first signal: who passes signals on, as timeout(1) does, sends it to the process and its group.
  bool interrupt(Time now) {
    interrupted_at_ = std::min(interrupted_at_, now);
    return now < interrupted_at_ + std::chrono::seconds(1);
  }

 private:
  Phase phase_ = Phase::starting;
  Cause cause_ = Cause::finished;
  int exit_code_ = exit_code::ok;
  std::string words_;
  Time deadline_ = never;
  Time interrupted_at_ = never;  // for the first time
  Time short_since_ = never;
  std::string standstill_;
  std::optional<Failure> kept_;
};

}  // namespace elasticrun::job::course
