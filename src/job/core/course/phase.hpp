// The life of a job as a table: every phase, everything that can happen, and what follows.
//
// What is not in the table does not change the phase (a late report of a broken world while the job
// is stopping, say).
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

enum class Happening {
  world_formed,
  world_broken,
  below_minimum,
  trained,
  train_again,
  stop,
  workers_gone,
  agents_gone,
};

inline constexpr std::array happenings{
    Named<Happening>{Happening::world_formed, "a world formed"},
    Named<Happening>{Happening::world_broken, "the world broke"},
    Named<Happening>{Happening::below_minimum, "too few are left"},
    Named<Happening>{Happening::trained, "all members are done"},
    Named<Happening>{Happening::train_again, "a member trains again"},
    Named<Happening>{Happening::stop, "the job is to end"},
    Named<Happening>{Happening::workers_gone, "the last worker has gone"},
    Named<Happening>{Happening::agents_gone, "the last agent has gone"},
};

using PhaseTransition = Transition<Phase, Happening>;

inline constexpr std::array phase_transitions{
    PhaseTransition{Phase::starting, Happening::world_formed, Phase::training},
    PhaseTransition{Phase::starting, Happening::world_broken, Phase::reforming},
    PhaseTransition{Phase::starting, Happening::below_minimum, Phase::short_of},
    PhaseTransition{Phase::starting, Happening::stop, Phase::stopping},
    PhaseTransition{Phase::starting, Happening::workers_gone, Phase::closing},
    PhaseTransition{Phase::training, Happening::world_broken, Phase::reforming},
    PhaseTransition{Phase::training, Happening::trained, Phase::trained},
    PhaseTransition{Phase::training, Happening::stop, Phase::stopping},
    PhaseTransition{Phase::reforming, Happening::world_formed, Phase::training},
    PhaseTransition{Phase::reforming, Happening::below_minimum, Phase::short_of},
    PhaseTransition{Phase::reforming, Happening::trained, Phase::trained},
    PhaseTransition{Phase::reforming, Happening::stop, Phase::stopping},
    PhaseTransition{Phase::short_of, Happening::world_formed, Phase::training},
    PhaseTransition{Phase::short_of, Happening::world_broken, Phase::reforming},
    PhaseTransition{Phase::short_of, Happening::trained, Phase::trained},
    PhaseTransition{Phase::short_of, Happening::stop, Phase::stopping},
    PhaseTransition{Phase::trained, Happening::train_again, Phase::training},
    PhaseTransition{Phase::trained, Happening::world_formed, Phase::training},
    PhaseTransition{Phase::trained, Happening::world_broken, Phase::reforming},
    PhaseTransition{Phase::trained, Happening::stop, Phase::stopping},
    PhaseTransition{Phase::trained, Happening::workers_gone, Phase::closing},
    PhaseTransition{Phase::stopping, Happening::workers_gone, Phase::closing},
    PhaseTransition{Phase::closing, Happening::agents_gone, Phase::ended},
};

constexpr Phase next(Phase from, Happening happening) {
  return next_in(phase_transitions, from, happening);
}

using elasticrun::to_text;

constexpr std::string_view to_text(Phase phase) { return name_in(phases, phase); }

}  // namespace elasticrun::job::course
