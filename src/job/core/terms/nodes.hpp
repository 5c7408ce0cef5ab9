// What an administrator does to nodes of a job of Slurm, as events for its core.
#pragma once

#include <string>

#include "base/ids.hpp"

namespace elasticrun::job::nodes {

// The driver takes the slots of the host away, as those of a host that leaves.
struct Drained {
  HostId host;
  std::string why;
};
// The host may be used again; its slots are back.
struct Resumed {
  HostId host;
  std::string news;
};

}  // namespace elasticrun::job::nodes
