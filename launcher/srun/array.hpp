// The array of jobs whose nodes join a running job (--slurm-grow): what sbatch and scancel are
// asked for. Pure.
//
// Each job of the array has a node, and starts an agent there that dials in with the join key; one
// that still waits in Slurm's queue costs nothing. The agent is the job's script and no step: a
// signal for a step goes to all of its processes, the workers too.
#pragma once

#include <string>

namespace elasticrun::launcher::srun {

struct Array {
  std::string name;        // of its jobs, and of no other's
  std::string options;     // for sbatch, as the user has written them for a shell
  std::string agent;       // path of elasticrun-agent, here and on the nodes
  int slots = 0;           // workers of a node; 0: one for each GPU
  std::string controller;  // address and port
  std::string key_file;    // absolute path of the join key, here and on the nodes
};

// For sh(1). A job's agent hears of its time limit a minute before, and its workers leave by a
// planned change then.
std::string submit_command(const Array& array);
// Ends those of its jobs that still wait, or run.
std::string cancel_command(const Array& array);

}  // namespace elasticrun::launcher::srun
