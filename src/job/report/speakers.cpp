#include "job/report/speakers.hpp"

#include <utility>

namespace elasticrun::job::report {

void Speakers::ranked(WorkerId worker, std::int32_t rank) {
  const auto found = speakers_.find(worker);
  if (found != speakers_.end()) found->second.rank = rank;
}

const Speaker* Speakers::find(HostId host, WorkerId worker) const {
  const auto found = speakers_.find(worker);
  return found != speakers_.end() && found->second.host == host ? &found->second : nullptr;
}

std::vector<Speaker> Speakers::exited(HostId host, WorkerId worker) {
  if (!find(host, worker)) return {};
  Speaker& speaker = speakers_[worker];
  if (std::exchange(speaker.gone, true)) return {};
  return {speaker};
}

std::vector<Speaker> Speakers::host_gone(HostId host) {
  std::vector<Speaker> gone;
  for (auto& [worker, speaker] : speakers_)
    if (speaker.host == host && !std::exchange(speaker.gone, true)) gone.push_back(speaker);
  return gone;
}

}  // namespace elasticrun::job::report
