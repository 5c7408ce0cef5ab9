// An agent in a step of Slurm whose controller is silent for good asks Slurm about the job, and
// requeues or cancels a job that has lost its script (a driver). Rules: launcher/srun/orphan.hpp.
#pragma once

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent {

class OrphanedJob {
 public:
  // Duplicates the watchdog's socket, because the agent closes its own before settle().
  explicit OrphanedJob(int watchdog);
  // Blocks until the job is requeued or cancelled, or needs neither, for at most 15 minutes.
  // Returns at once outside of a step, and as soon as the watchdog is gone.
  void settle() const;

 private:
  const net::Fd watchdog_;
};

}  // namespace elasticrun::launcher::agent
