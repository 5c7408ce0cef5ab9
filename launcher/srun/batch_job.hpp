// The job of Slurm in whose script elasticrun runs: until when it may run, and whether Slurm starts
// it again when its state is saved.
//
// Slurm ends a job at its time limit, and takes back nodes; who wants to go on then puts the job
// into the queue again. Its script is started anew, with as many nodes as there are.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace elasticrun::launcher::srun {

struct BatchJob {
  std::string id;
  bool script = false;           // of sbatch; else there is nothing to start again
  bool may_be_requeued = false;  // --requeue, or the cluster's default
  bool preempted = false;        // its nodes are for a job of higher priority
  bool runs = false;             // not waiting, suspended, ending or over
  bool lost_its_script = false;  // the job no longer has the node on which its script ran
  int restarts = 0;
  std::optional<std::chrono::sys_seconds> ends_at;  // empty: it has no time limit

  bool operator==(const BatchJob&) const = default;
};

// From the line that `SLURM_TIME_FORMAT=%s scontrol --oneliner show job` prints.
Result<BatchJob> parse_batch_job(std::string_view line);

// Asks scontrol; blocks for a few seconds at most. Errors say what was tried, and what it said.
Result<BatchJob> find_batch_job(const std::string& id);
// Puts a job into the queue again. Slurm ends it then, and with it this process.
Result<void> requeue(const std::string& id);

// Ends a job.
Result<void> cancel(const std::string& id);

// Why Slurm will not start this job again, and what to do; empty: it will, if it is asked.
std::string why_not_again(const BatchJob& job);

}  // namespace elasticrun::launcher::srun
