// Turns what a program without the library says about its progress into reports.
//
// The program writes a line for each step to the descriptor that ELASTICRUN_PROGRESS_FD names,
// "samples=4096": how many samples this worker has used in it. The time between two lines is the
// time of a step, so the first line of a worker says only when its second step began. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

class ProgressMeter {
 public:
  // Reports are at least `interval` apart.
  ProgressMeter(WorkerId worker, Duration interval) : interval_(interval) {
    report_.worker = worker;
  }
  // Takes one line or several; lines that say nothing of samples are ignored. Returns a report when
  // it is time for one.
  std::optional<wire::agent::Progress> hear(std::string_view lines, Time now);

 private:
  const Duration interval_;
  std::optional<Time> since_;     // the last step that was reported, or the first one
  wire::agent::Progress report_;  // of the steps since then
};

}  // namespace elasticrun::launcher::agent::workers
