// The life of a job as a table: every phase, every event, and the phase that follows.
//
// An event that is not in the table does not change the phase (a late report of a broken world
// while the job is stopping, say).
#pragma once

#include "base/time.hpp"
#include "job/core/terms/state_table.hpp"

namespace elasticrun::job::course {

enum class Phase { starting, training, reforming, short_of, trained, stopping, closing, ended };

inline constexpr std::array phases{
    Named<Phase>{Phase::starting, "starting", "hosts and first workers come up; no world yet"},
    Named<Phase>{Phase::training, "training", "a world steps"},
    Named<Phase>{Phase::reforming, "reforming", "a world broke, and the next one is being formed"},
    Named<Phase>{Phase::short_of, "short of workers",
                 "there are fewer than the minimum; more are waited for"},
    Named<Phase>{Phase::trained, "trained",
                 "the last call of train is over; workers end by themselves"},
    Named<Phase>{Phase::stopping, "stopping", "workers are told to end"},
    Named<Phase>{Phase::closing, "closing", "no worker is left; agents end"},
    Named<Phase>{Phase::ended, "ended", "nothing of the job is left"},
};

// The job is to end: its workers are told so, or none is left.
constexpr bool is_ending(Phase phase) {
  return phase == Phase::stopping || phase == Phase::closing || phase == Phase::ended;
}

enum class PhaseEvent {
  world_formed,
  world_broken,
  below_minimum,
  trained,
  train_again,
  stop,
  workers_gone,
  agents_gone,
};

inline constexpr std::array phase_events{
    Named<PhaseEvent>{PhaseEvent::world_formed, "a world formed"},
    Named<PhaseEvent>{PhaseEvent::world_broken, "the world broke"},
    Named<PhaseEvent>{PhaseEvent::below_minimum, "too few are left"},
    Named<PhaseEvent>{PhaseEvent::trained, "all members are done"},
    Named<PhaseEvent>{PhaseEvent::train_again, "a member trains again"},
    Named<PhaseEvent>{PhaseEvent::stop, "the job is to end"},
    Named<PhaseEvent>{PhaseEvent::workers_gone, "the last worker has gone"},
    Named<PhaseEvent>{PhaseEvent::agents_gone, "the last agent has gone"},
};

using PhaseTransition = Transition<Phase, PhaseEvent>;

inline constexpr std::array phase_transitions{
    PhaseTransition{Phase::starting, PhaseEvent::world_formed, Phase::training},
    PhaseTransition{Phase::starting, PhaseEvent::world_broken, Phase::reforming},
    PhaseTransition{Phase::starting, PhaseEvent::below_minimum, Phase::short_of},
    PhaseTransition{Phase::starting, PhaseEvent::stop, Phase::stopping},
    PhaseTransition{Phase::starting, PhaseEvent::workers_gone, Phase::closing},
    PhaseTransition{Phase::training, PhaseEvent::world_broken, Phase::reforming},
    PhaseTransition{Phase::training, PhaseEvent::trained, Phase::trained},
    PhaseTransition{Phase::training, PhaseEvent::stop, Phase::stopping},
    PhaseTransition{Phase::reforming, PhaseEvent::world_formed, Phase::training},
    PhaseTransition{Phase::reforming, PhaseEvent::below_minimum, Phase::short_of},
    PhaseTransition{Phase::reforming, PhaseEvent::trained, Phase::trained},
    PhaseTransition{Phase::reforming, PhaseEvent::stop, Phase::stopping},
    PhaseTransition{Phase::short_of, PhaseEvent::world_formed, Phase::training},
    PhaseTransition{Phase::short_of, PhaseEvent::world_broken, Phase::reforming},
    PhaseTransition{Phase::short_of, PhaseEvent::trained, Phase::trained},
    PhaseTransition{Phase::short_of, PhaseEvent::stop, Phase::stopping},
    PhaseTransition{Phase::trained, PhaseEvent::train_again, Phase::training},
    PhaseTransition{Phase::trained, PhaseEvent::world_formed, Phase::training},
    PhaseTransition{Phase::trained, PhaseEvent::world_broken, Phase::reforming},
    PhaseTransition{Phase::trained, PhaseEvent::stop, Phase::stopping},
    PhaseTransition{Phase::trained, PhaseEvent::workers_gone, Phase::closing},
    PhaseTransition{Phase::stopping, PhaseEvent::workers_gone, Phase::closing},
    PhaseTransition{Phase::closing, PhaseEvent::agents_gone, Phase::ended},
};

constexpr Phase next(Phase from, PhaseEvent happening) {
  return next_in(phase_transitions, from, happening);
}

using elasticrun::to_text;

constexpr std::string_view to_text(Phase phase) { return name_in(phases, phase); }

}  // namespace elasticrun::job::course
