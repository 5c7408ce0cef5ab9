// The life of a job (phase.hpp) and every way in which it can end.
#pragma once

#include <algorithm>
#include <array>
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
  nothing_started,
  hosts_too_few,
  workers_too_few,
  state_lost,
  too_many_failures,
  step_kills,
  states_differ,
};

// `own_code`: that of the worker, as a shell would say it, or of the signal.
inline constexpr int own_code = -1;

struct CauseRow {
  Cause cause;
  int exit_code;
  std::string_view when;
};

inline constexpr std::array causes{
    CauseRow{Cause::finished, exit_code::ok, "all workers have ended with 0"},
    CauseRow{Cause::worker_failed, own_code,
             "a worker of a plain program failed, or one before the first world, or after the end "
             "of training"},
    CauseRow{Cause::same_mistake, own_code, "all members ended by the same mistake"},
    CauseRow{Cause::signalled, own_code, "INT (130), or TERM or HUP (both 143)"},
    CauseRow{Cause::nothing_started, exit_code::nothing_started, "no host could be used"},
    CauseRow{Cause::hosts_too_few, exit_code::usage,
             "the hosts that were named have fewer slots than the minimum"},
    CauseRow{Cause::workers_too_few, exit_code::below_minimum,
             "fewer workers than the minimum for --minimum-timeout"},
    CauseRow{Cause::state_lost, exit_code::below_minimum, "nobody is left who holds the state"},
    CauseRow{Cause::too_many_failures, exit_code::budget_spent,
             "more failures in a row than --max-restarts"},
    CauseRow{Cause::step_kills, exit_code::budget_spent,
             "one step has killed whoever computed it, three times"},
    CauseRow{Cause::states_differ, exit_code::diverged,
             "two members' states differ, and nobody knows which is right"},
};

constexpr const CauseRow& row_of(Cause cause) { return causes[static_cast<std::size_t>(cause)]; }

class Ending {
 public:
  // From SIGKILL to the end of a process, on a host that is well.
  static constexpr Duration dying_time = std::chrono::seconds(10);
  // Of an agent that says nothing, while agents end.
  static constexpr Duration closing_time = std::chrono::seconds(5);

  Phase phase() const { return phase_; }
  void happen(PhaseEvent happening) { phase_ = next(phase_, happening); }
  bool is(Phase phase) const { return phase_ == phase; }
  // Workers are told to end, or have ended.
  bool ending() const { return is(Phase::stopping) || over(); }
  // No worker is waited for any more.
  bool over() const { return is(Phase::closing) || is(Phase::ended); }
  // There is a world, or one is being formed.
  bool runs() const { return is(Phase::training) || is(Phase::reforming); }

  // `code` where the cause has none of its own. What was first counts: once more changes nothing.
  void begin(Cause cause, int code, std::string words, Time deadline);
  int exit_code() const { return exit_code_; }
  // Why the job ends; empty: it does not, or all workers finished.
  const std::string& words() const { return words_; }

  // Of stopping, then of closing.
  Time deadline() const { return deadline_; }
  void set_deadline(Time at) { deadline_ = at; }

  // Fewer than the minimum are waited for since then: from the start on, or after losses.
  bool short_of_workers() const { return short_since_ != never; }
  void short_since(Time now) { short_since_ = std::min(short_since_, now); }
  void enough() { short_since_ = never; }
  // When that is given up.
  Time patience_ends(Duration patience) const;

  // The controller stood still for so long that hosts have stopped their workers: the cause of what
  // follows. Empty: it did not, or the job has gone on since.
  void stood_still(std::string words) { standstill_ = std::move(words); }
  const std::string& standstill() const { return standstill_; }

  // A person wants it to end. False: once more.
  bool interrupt(std::int32_t signal) { return std::exchange(signal_, signal) == 0; }

 private:
  Phase phase_ = Phase::starting;
  int exit_code_ = exit_code::ok;
  std::string words_;
  Time deadline_ = never;
  std::int32_t signal_ = 0;  // 0: none came
  Time short_since_ = never;
  std::string standstill_;
};

}  // namespace elasticrun::job::course
