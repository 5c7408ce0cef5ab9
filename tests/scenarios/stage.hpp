// A core on a stage: it gets one line of a scenario and answers with lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "tests/fakes/words.hpp"

namespace elasticrun::scenarios {

using fakes::Words;
using Lines = std::vector<std::string>;

// Second 0 of a scenario. Far from the beginning of time, so that a time that was never set shows.
inline constexpr Time scene_begin = Time{} + std::chrono::hours(1);

class Stage {
 public:
  virtual ~Stage() = default;
  // Plays one event and returns the answers.
  virtual Lines play(Words& words, Time now) = 0;
};

// `setting`: the scenario's first line after its opening comment, such as "minimum 2".
std::unique_ptr<Stage> membership_stage(Words& setting);
std::unique_ptr<Stage> worker_stage(Words& setting);
std::unique_ptr<Stage> job_stage(Words& setting);

}  // namespace elasticrun::scenarios
