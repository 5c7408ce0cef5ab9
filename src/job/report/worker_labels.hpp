// The label of each worker for its output, and whether the worker has exited (pure).
#pragma once

#include <map>
#include <vector>

#include "job/report/sink.hpp"

namespace elasticrun::job::report {

class WorkerLabels {
 public:
  void started(const WorkerLabel& label) { labels_[label.worker] = label; }
  void ranked(WorkerId worker, std::int32_t rank);

  // Null when that worker is not on that host: an agent cannot report for workers of other hosts.
  const WorkerLabel* find(HostId host, WorkerId worker) const;

  // Mark that worker, or all workers of that host, as exited. Return the workers that had not been
  // marked before.
  std::vector<WorkerLabel> exited(HostId host, WorkerId worker);
  std::vector<WorkerLabel> host_gone(HostId host);

 private:
  std::map<WorkerId, WorkerLabel> labels_;
};

}  // namespace elasticrun::job::report
