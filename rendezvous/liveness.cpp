// See liveness.hpp.
#include "rendezvous/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace elasticrun::rendezvous {

void Liveness::host_heard(HostId host, Time now) {
  const Duration silence = hosts_.empty() ? Duration::zero() : now - hosts_.newest();
  hosts_.heard(host, now);
  if (!std::exchange(everybody_, false)) return;
  workers_unheard(silence, now);
  // The first host is back. Packets of the others arrive when their TCP next retransmits.
  hosts_.change([&](Time heard) { return std::max(heard, now - options_.agent_timeout / 2); });
}

void Liveness::host_gone(HostId host) {
  hosts_.forget(host);
  if (hosts_.empty()) everybody_ = false;
}

void Liveness::worker_sample(WorkerId id, const wire::Sample& sample, Time now) {
  worker_heard(id, now);
  Doing& doing = doing_[id];
  unnote(id, doing);
  doing.generation = sample.generation;
  doing.phase = sample.phase == "reduce"                               ? Phase::reducing
                : sample.phase == "compute" || sample.phase == "apply" ? Phase::busy
                : sample.phase == "epoch"                              ? Phase::ending_epoch
                                                                       : Phase::elsewhere;
  doing.since = now - Duration(sample.waiting_ns);
  doing.lost_link = sample.lost_link;
  note(id, doing, now);
}

void Liveness::note(WorkerId id, const Doing& doing, Time now) {
  if (doing.busy()) ++busy_;
  if (is_late(doing, now)) (doing.busy() ? hung_ : stuck_).insert(id);
}

void Liveness::unnote(WorkerId id, const Doing& doing) {
  if (doing.busy()) --busy_;
  hung_.erase(id);
  stuck_.erase(id);
}

void Liveness::worker_gone(WorkerId worker) {
  workers_.forget(worker);
  const auto found = doing_.find(worker);
  if (found == doing_.end()) return;
  unnote(worker, found->second);
  doing_.erase(found);
}

void Liveness::stood_still(Duration time, Time now) {
  hosts_.change([&](Time heard) { return std::min(heard + time, now); });
  workers_unheard(time, now);
}

void Liveness::workers_unheard(Duration time, Time now) {
  const auto later = [&](Time heard) { return std::min(heard + time, now); };
  workers_.change(later);
  busy_ = 0;
  hung_.clear();
  stuck_.clear();
  for (auto& [id, doing] : doing_) {
    doing.since = later(doing.since);
    note(id, doing, now);
  }
}

Duration Liveness::limit(Phase phase) const {
  return phase == Phase::ending_epoch ? options_.epoch_timeout : options_.hung;
}

bool Liveness::is_late(const Doing& doing, Time now) const {
  if (doing.phase == Phase::elsewhere) return false;
  const bool lost = doing.phase == Phase::reducing && doing.lost_link;
  return now >=
         doing.since + (lost ? std::min(options_.hung, options_.lost_link) : limit(doing.phase));
}

std::vector<Verdict> Liveness::check(Time now, bool state_kept) {
  std::vector<Verdict> verdicts;
  check_hosts(now, state_kept, verdicts);
  if (everybody_) return verdicts;  // no worker's messages arrive without its host
  while (!workers_.empty() && now >= workers_.oldest() + options_.worker_timeout) {
    const WorkerId worker = workers_.silent_longest();
    verdicts.push_back(
        WorkerSilent{worker, fmt::format("was silent for {}: its library sent nothing",
                                         to_text(now - workers_.oldest()))});
    worker_gone(worker);
  }
  // The workers in a reduction have waited for the hung ones. If the end of those does not free
  // them, their samples show it again.
  if (!hung_.empty()) stuck_.clear();
  for (const WorkerId worker : std::set(hung_)) {
    const Phase phase = doing_.at(worker).phase;
    const bool in_epoch = phase == Phase::ending_epoch;
    verdicts.push_back(WorkerSilent{
        worker, fmt::format("was in {} for longer than --{} {}", in_epoch ? "on_epoch" : "one step",
                            in_epoch ? "epoch-timeout" : "hung", to_text(limit(phase)))});
    worker_gone(worker);
  }
  if (somebody_is_stuck()) check_stuck(now, verdicts);
  return verdicts;
}

// A host counts as silent on its own only while others are heard. If no host has been heard for
// half of the timeout when the first one is due, all of them are silent.
void Liveness::check_hosts(Time now, bool state_kept, std::vector<Verdict>& verdicts) {
  if (!everybody_ && !hosts_.empty() && now >= hosts_.oldest() + options_.agent_timeout &&
      now >= hosts_.newest() + options_.agent_timeout / 2) {
    everybody_ = true;
    verdicts.push_back(EverybodySilent{hosts_.size(), patience(state_kept)});
  }
  while (!hosts_.empty() && now >= hosts_.oldest() + patience(state_kept)) {
    const HostId host = hosts_.silent_longest();
    verdicts.push_back(
        HostSilent{host, fmt::format("agent silent for {}", to_text(now - hosts_.oldest()))});
    host_gone(host);
  }
}

void Liveness::check_stuck(Time now, std::vector<Verdict>& verdicts) {
  for (const WorkerId worker : std::exchange(stuck_, {})) {
    Doing& doing = doing_.at(worker);
    const bool lost = doing.lost_link && now >= doing.since + options_.lost_link;
    verdicts.push_back(ReductionStuck{
        worker, doing.generation,
        lost ? fmt::format("one reduction has waited for {} for what does not arrive",
                           to_text(now - doing.since))
             : fmt::format("one reduction took longer than --hung {}", to_text(options_.hung))});
    doing.phase = Phase::elsewhere;
  }
}

Time Liveness::wake_at(bool state_kept) const {
  Time at = never;
  if (!hosts_.empty()) at = hosts_.oldest() + patience(state_kept);
  if (everybody_) return at;
  // A worker that hangs goes on sending samples, which say for how long it has been waiting.
  if (!hung_.empty() || somebody_is_stuck()) return at_once;
  if (!workers_.empty()) at = std::min(at, workers_.oldest() + options_.worker_timeout);
  return at;
}

}  // namespace elasticrun::rendezvous
