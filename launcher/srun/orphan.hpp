// What becomes of a job of Slurm that has lost its script. Pure.
//
// With --no-kill a job outlives the loss of any of its nodes. If that is the node of the script,
// the job runs nothing, and Slurm keeps its other nodes until the time limit. The
// agents there know that their controller is silent; whether its node is lost only Slurm knows, and
// late.
#pragma once

#include "launcher/srun/batch_job.hpp"

namespace elasticrun::launcher::srun {

enum class Orphan {
  wait,     // the script may still run, or Slurm has not noticed
  leave,    // the job is over, has been put into the queue again, or is none of a script
  requeue,  // put it into the queue again
  cancel,   // end it, as it may not be requeued
};

// For an agent of the job's start of this number whose controller is silent for good.
Orphan orphan(const BatchJob& job, int restarts);

// Whether the agent on this node of its step, from 0, asks Slurm at all: some do, and not all.
bool asks_for_orphan(int node);

}  // namespace elasticrun::launcher::srun
