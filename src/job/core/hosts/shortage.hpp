// Reports when the hosts of a running job become too few for its minimum, and when they are enough
// again: each once. Pure.
//
// A user who edits a host file below the minimum sees nothing happen, because the job keeps its
// minimum number of workers, some on slots that the file no longer names. That is right, but it
// must be reported.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/core/terms/events.hpp"

namespace elasticrun::job::hosts {

class Shortage {
 public:
  struct Look {
    std::optional<std::string> few;  // how slots are too few: "1 of at least 2 hosts"; none: enough
    std::string source;   // file or program that named the hosts; empty: another kind of change
    int slots = 0;        // number there is
    int minimum = 1;      // fewest workers
    bool running = true;  // a world exists or is being formed
    Duration patience{};  // how long the job waits for more slots without a world
  };
  // The note to log; nothing: there is no news since the last one.
  std::optional<HostsNoted> look(const Look& now);

 private:
  std::optional<std::string> told_;  // Look::few as last reported
};

}  // namespace elasticrun::job::hosts
