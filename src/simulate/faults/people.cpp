// Requests by users while faults happen (faults.cpp).
#include <csignal>

#include "simulate/faults/cluster.hpp"

namespace elasticrun::simulate::faults {

void Cluster::person(const Fault& fault) {
  if (fault.kind == FaultKind::scale) return feed(job::Scale{fault.number});
  if (fault.kind == FaultKind::edit) return edit_hosts(fault.number);
  if (fault.kind == FaultKind::shrink_and_cut) return shrink_and_cut(fault.number, fault.time);
  const auto process = worker_of(fault);
  if (!process) return;
  tainted_.insert(process->id());
  process->leave();
}

void Cluster::edit_hosts(int left) {
  file_slots_.clear();
  for (std::size_t slot = 0; slot < all_slots_.size(); ++slot)
    if (left >> slot & 1) file_slots_.push_back(all_slots_[slot]);
  tell_slots();
}

// A change that could lead to two worlds at once: the leaving members receive it, but the staying
// one is cut off or its agent is frozen, so it goes on beside a world that forms without it.
void Cluster::shrink_and_cut(int how, Duration time) {
  feed(job::Scale{1});
  const auto members = job_->membership().members();
  if (members.empty()) return;
  const job::workers::Worker* worker = job_->workers().find(members.front());
  if (!worker) return;
  const auto agent = agents_[worker->slot.host].back();
  touch_all(*agent);
  const Duration soon = stage_.between_us(1000, 40'000);
  if (how == 2)
    return queue_.after(soon, [agent, who = members.front()] {
      const auto process = agent->workers().find(who);
      if (process != agent->workers().end()) process->second->die(0, SIGKILL);
    });
  if (how == 1) return queue_.after(soon, [agent, time] { agent->freeze(false, time); });
  queue_.after(soon, [agent] { agent->cut(); });
  queue_.after(time, [agent] { agent->heal(); });
}

}  // namespace elasticrun::simulate::faults
