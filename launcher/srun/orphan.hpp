// What becomes of a job of Slurm that has lost its script. Pure.
//
// With --no-kill a job outlives the loss of any of its nodes. If that is the node of the script,
// the job runs nothing, and Slurm keeps its other nodes until the time limit. The agents there know
// only that their controller is silent. Whether its node is lost, Slurm finds out after minutes.
#pragma once

#include "launcher/srun/batch_job.hpp"

namespace elasticrun::launcher::srun {

enum class Orphan {
  wait,     // the script may still run, or Slurm has not noticed
  leave,    // the job is over, was requeued, or has no script
  requeue,  // put it into the queue again
  cancel,   // end it, because it may not be requeued
};

// What an agent whose controller is silent for good does with its job. `restarts`: how often Slurm
// had requeued the job when it started the agent.
Orphan orphan(const BatchJob& job, int restarts);

// Whether the agent on this node of its step, from 0, asks Slurm. The first three do: one may be
// lost with the script, and all of a large job would flood Slurm's controller.
bool asks_for_orphan(int node);

}  // namespace elasticrun::launcher::srun
