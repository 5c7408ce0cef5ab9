// The life of a job as a table: every phase, everything that can happen, and what follows.
//
// What is not in the table does not change the phase (a late report of a broken world while the job
// is stopping, say).
#pragma once

#include <array>
#include <string_view>

#include "base/time.hpp"

namespace elasticrun::job {

enum class Phase {
  starting,   // hosts and first workers come up; no world yet
  training,   // a world steps
  reforming,  // a world broke, the next one is being made
  short_of,   // fewer workers than the minimum; waiting for more
  trained,    // the program's last call of train is over; workers end by themselves
  stopping,   // workers are told to end
  closing,    // no worker is left; agents end
  ended,
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

struct Transition {
  Phase from;
  Happening happening;
  Phase to;
};

inline constexpr std::array transitions{
    Transition{Phase::starting, Happening::world_formed, Phase::training},
    Transition{Phase::starting, Happening::world_broken, Phase::reforming},
    Transition{Phase::starting, Happening::below_minimum, Phase::short_of},
    Transition{Phase::starting, Happening::stop, Phase::stopping},
    Transition{Phase::starting, Happening::workers_gone, Phase::closing},
    Transition{Phase::training, Happening::world_broken, Phase::reforming},
    Transition{Phase::training, Happening::trained, Phase::trained},
    Transition{Phase::training, Happening::stop, Phase::stopping},
    Transition{Phase::reforming, Happening::world_formed, Phase::training},
    Transition{Phase::reforming, Happening::below_minimum, Phase::short_of},
    Transition{Phase::reforming, Happening::trained, Phase::trained},
    Transition{Phase::reforming, Happening::stop, Phase::stopping},
    Transition{Phase::short_of, Happening::world_formed, Phase::training},
    Transition{Phase::short_of, Happening::world_broken, Phase::reforming},
    Transition{Phase::short_of, Happening::trained, Phase::trained},
    Transition{Phase::short_of, Happening::stop, Phase::stopping},
    Transition{Phase::trained, Happening::train_again, Phase::training},
    Transition{Phase::trained, Happening::world_formed, Phase::training},
    Transition{Phase::trained, Happening::world_broken, Phase::reforming},
    Transition{Phase::trained, Happening::stop, Phase::stopping},
    Transition{Phase::trained, Happening::workers_gone, Phase::closing},
    Transition{Phase::stopping, Happening::workers_gone, Phase::closing},
    Transition{Phase::closing, Happening::agents_gone, Phase::ended},
};

constexpr Phase next(Phase from, Happening happening) {
  for (const auto& t : transitions)
    if (t.from == from && t.happening == happening) return t.to;
  return from;
}

using elasticrun::to_text;

constexpr std::string_view to_text(Phase phase) {
  constexpr std::array names{"starting", "training", "reforming", "short of workers",
                             "trained",  "stopping", "closing",   "ended"};
  return names[static_cast<std::size_t>(phase)];
}

}  // namespace elasticrun::job
