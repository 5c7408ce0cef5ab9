#include "rendezvous/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace elasticrun::rendezvous {

void Liveness::worker_sample(WorkerId id, const wire::Sample& sample, Time now) {
  Worker& worker = workers_[id];
  worker.heard = now;
  worker.generation = sample.generation;
  worker.phase = sample.phase == "reduce"                               ? Phase::reducing
                 : sample.phase == "compute" || sample.phase == "apply" ? Phase::busy
                                                                        : Phase::elsewhere;
  worker.phase_since = now - Duration(sample.waiting_ns);
}

std::vector<Verdict> Liveness::check(Time now) {
  std::vector<Verdict> verdicts;
  std::erase_if(hosts_, [&](const auto& entry) {
    if (now < entry.second + options_.agent_timeout) return false;
    verdicts.push_back(
        HostSilent{entry.first, fmt::format("agent silent for {}", to_text(now - entry.second))});
    return true;
  });
  bool somebody_busy = false;
  std::erase_if(workers_, [&](const auto& entry) {
    const auto& [id, worker] = entry;
    somebody_busy |= worker.phase == Phase::busy;
    const bool silent = now >= worker.heard + options_.worker_timeout;
    const bool hung = worker.phase == Phase::busy && now >= worker.phase_since + options_.hung;
    if (silent)
      verdicts.push_back(WorkerSilent{
          id, fmt::format("its library was silent for {}", to_text(now - worker.heard))});
    else if (hung)
      verdicts.push_back(WorkerSilent{
          id, fmt::format("one step took longer than --hung {}", to_text(options_.hung))});
    return silent || hung;
  });
  if (somebody_busy) return verdicts;
  for (auto& [id, worker] : workers_) {
    if (worker.phase != Phase::reducing || now < worker.phase_since + options_.hung) continue;
    verdicts.push_back(ReductionStuck{
        id, worker.generation,
        fmt::format("one reduction took longer than --hung {}", to_text(options_.hung))});
    worker.phase = Phase::elsewhere;
  }
  return verdicts;
}

Time Liveness::wake_at() const {
  Time at = never;
  for (const auto& [host, heard] : hosts_) at = std::min(at, heard + options_.agent_timeout);
  // A hang needs no timer: a worker that hangs goes on sending samples, and each is followed by a
  // check.
  for (const auto& [id, worker] : workers_)
    at = std::min(at, worker.heard + options_.worker_timeout);
  return at;
}

}  // namespace elasticrun::rendezvous
