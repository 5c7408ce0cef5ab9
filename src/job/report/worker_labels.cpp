// See worker_labels.hpp.
#include "job/report/worker_labels.hpp"

#include <utility>

namespace elasticrun::job::report {

void WorkerLabels::ranked(WorkerId worker, std::int32_t rank) {
  const auto found = labels_.find(worker);
  if (found != labels_.end()) found->second.rank = rank;
}

const WorkerLabel* WorkerLabels::find(HostId host, WorkerId worker) const {
  const auto found = labels_.find(worker);
  return found != labels_.end() && found->second.host == host ? &found->second : nullptr;
}

std::vector<WorkerLabel> WorkerLabels::exited(HostId host, WorkerId worker) {
  if (!find(host, worker)) return {};
  WorkerLabel& label = labels_[worker];
  if (std::exchange(label.gone, true)) return {};
  return {label};
}

std::vector<WorkerLabel> WorkerLabels::host_gone(HostId host) {
  std::vector<WorkerLabel> gone;
  for (auto& [worker, label] : labels_)
    if (label.host == host && !std::exchange(label.gone, true)) gone.push_back(label);
  return gone;
}

}  // namespace elasticrun::job::report
