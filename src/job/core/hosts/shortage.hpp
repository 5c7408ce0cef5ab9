// Tells when the hosts of a running job become too few for its minimum, and when they are enough
// again: each once. Pure.
//
// A person who edits a host file below the minimum sees nothing happen, because the job keeps its
// minimum on slots that are named no more. That is right, and must be said.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/core/terms/source_notes.hpp"

namespace elasticrun::job::hosts {

class Shortage {
 public:
  struct Look {
    std::string few;     // how the slots are too few ("1 of at least 2 hosts"); empty: they are not
    std::string source;  // which file or program has named them; empty: it was another change
    int slots = 0;       // there are
    int minimum = 1;     // of workers
    bool running = true;  // there is a world, or one is being formed
    Duration patience{};  // with which more are waited for when there is none
  };
  // Nothing: it was told already, or is no news.
  std::optional<job::HostsNoted> look(const Look& now);

 private:
  std::string told_;  // how they are too few, as last told
};

}  // namespace elasticrun::job::hosts
