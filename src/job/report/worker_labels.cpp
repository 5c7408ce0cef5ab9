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
  WorkerLabel& speaker = labels_[worker];
  if (std::exchange(speaker.gone, true)) return {};
  return {speaker};
}

std::vector<WorkerLabel> WorkerLabels::host_gone(HostId host) {
  std::vector<WorkerLabel> gone;
  for (auto& [worker, speaker] : labels_)
    if (speaker.host == host && !std::exchange(speaker.gone, true)) gone.push_back(speaker);
  return gone;
}

}  // namespace elasticrun::job::report
