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
                 : sample.phase == "epoch"                              ? Phase::ending_epoch
                                                                        : Phase::elsewhere;
  worker.phase_since = now - Duration(sample.waiting_ns);
  worker.lost_link = sample.lost_link;
}

// One host is silent when others are not; nobody's beats are older than half of the timeout then.
void Liveness::check_hosts(Time now, std::vector<Verdict>& verdicts) {
  const auto quiet_for = [&](Duration time) {
    return [=](const auto& entry) { return now >= entry.second + time; };
  };
  const bool everybody = std::ranges::any_of(hosts_, quiet_for(options_.agent_timeout)) &&
                         std::ranges::all_of(hosts_, quiet_for(options_.agent_timeout / 2));
  // The first is back; the others' packets come by the pauses of their own TCP.
  if (everybody_ && !everybody)
    for (auto& [host, heard] : hosts_) heard = std::max(heard, now - options_.agent_timeout / 2);
  if (everybody && !everybody_) verdicts.push_back(EverybodySilent{hosts_.size()});
  everybody_ = everybody;
  const Duration patience = everybody ? options_.worker_timeout : options_.agent_timeout;
  std::erase_if(hosts_, [&](const auto& entry) {
    if (now < entry.second + patience) return false;
    verdicts.push_back(
        HostSilent{entry.first, fmt::format("agent silent for {}", to_text(now - entry.second))});
    return true;
  });
}

void Liveness::stood_still(Duration time, Time now) {
  for (auto& [host, heard] : hosts_) heard = std::min(heard + time, now);
  for (auto& [id, worker] : workers_) {
    worker.heard = std::min(worker.heard + time, now);
    worker.phase_since = std::min(worker.phase_since + time, now);
  }
}

std::vector<Verdict> Liveness::check(Time now) {
  std::vector<Verdict> verdicts;
  check_hosts(now, verdicts);
  bool somebody_busy = false;  // those in a reduction wait for it
  std::erase_if(workers_, [&](const auto& entry) {
    const auto& [id, worker] = entry;
    const bool in_epoch = worker.phase == Phase::ending_epoch;
    const bool busy = in_epoch || worker.phase == Phase::busy;
    somebody_busy |= busy;
    const Duration limit = in_epoch ? options_.epoch_timeout : options_.hung;
    const bool silent = now >= worker.heard + options_.worker_timeout;
    const bool hung = busy && now >= worker.phase_since + limit;
    if (silent)
      verdicts.push_back(WorkerSilent{id, fmt::format("was silent for {}: its library sent nothing",
                                                      to_text(now - worker.heard))});
    else if (hung)
      verdicts.push_back(
          WorkerSilent{id, fmt::format("was in {} {}",
                                       in_epoch ? "on_epoch for longer than --epoch-timeout"
                                                : "one step for longer than --hung",
                                       to_text(limit))});
    return silent || hung;
  });
  if (somebody_busy) return verdicts;
  for (auto& [id, worker] : workers_) {
    if (worker.phase != Phase::reducing) continue;
    const bool hung = now >= worker.phase_since + options_.hung;
    const bool lost = worker.lost_link && now >= worker.phase_since + options_.lost_link;
    if (!hung && !lost) continue;
    verdicts.push_back(ReductionStuck{
        id, worker.generation,
        lost ? fmt::format("one reduction has waited for {} for what does not arrive",
                           to_text(now - worker.phase_since))
             : fmt::format("one reduction took longer than --hung {}", to_text(options_.hung))});
    worker.phase = Phase::elsewhere;
  }
  return verdicts;
}

Time Liveness::wake_at() const {
  Time at = never;
  const Duration patience = everybody_ ? options_.worker_timeout : options_.agent_timeout;
  for (const auto& [host, heard] : hosts_) at = std::min(at, heard + patience);
  // A hang needs no timer: a worker that hangs goes on sending samples, and each is followed by a
  // check.
  for (const auto& [id, worker] : workers_)
    at = std::min(at, worker.heard + options_.worker_timeout);
  return at;
}

}  // namespace elasticrun::rendezvous
