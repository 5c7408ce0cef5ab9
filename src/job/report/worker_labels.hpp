// Whose output it is: each worker's place, and whether it has exited (pure).
#pragma once

#include <map>
#include <vector>

#include "job/report/sink.hpp"

namespace elasticrun::job::report {

class WorkerLabels {
 public:
  void started(const WorkerLabel& speaker) { labels_[speaker.worker] = speaker; }
  void ranked(WorkerId worker, std::int32_t rank);

  // None when that worker is not of that host: nobody speaks for workers of others.
  const WorkerLabel* find(HostId host, WorkerId worker) const;

  // Those that have exited with this, and not before.
  std::vector<WorkerLabel> exited(HostId host, WorkerId worker);
  std::vector<WorkerLabel> host_gone(HostId host);

 private:
  std::map<WorkerId, WorkerLabel> labels_;
};

}  // namespace elasticrun::job::report
