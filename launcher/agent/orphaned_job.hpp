// The last thing that an agent in a step of Slurm does when its controller is silent for good (a
// driver): see launcher/srun/orphan.hpp.
#pragma once

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent {

class OrphanedJob {
 public:
  // Has a descriptor of its own for the watchdog's socket.
  explicit OrphanedJob(int watchdog);
  // Returns at once outside of a step, and when the watchdog is gone.
  void settle() const;

 private:
  const net::Fd watchdog_;
};

}  // namespace elasticrun::launcher::agent
