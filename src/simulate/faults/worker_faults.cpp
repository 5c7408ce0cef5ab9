// Faults of single workers (faults.cpp).
#include <fmt/format.h>

#include <csignal>

#include "simulate/faults/cluster.hpp"

namespace elasticrun::simulate::faults {

// The first living worker of the kind that the fault names, from the fault's place on.
std::shared_ptr<Process> Cluster::worker_of(const Fault& fault) const {
  const auto members = job_->membership().members();
  const auto meant = [&](const Process& process) {
    switch (fault.who) {
      case Who::newcomer:
        return process.member().committed() == no_state;
      case Who::member:
        return process.member().committed() != no_state;
      case Who::first_rank:
        return !members.empty() && members.front() == process.id();
      case Who::anybody:
        return true;
    }
    return true;
  };
  std::shared_ptr<Process> before, from;
  for (const auto& [host, runs] : agents_) {
    int slot = 0;
    const auto at = static_cast<std::uint64_t>(fault.host);
    for (const auto& agent : runs)
      for (const auto& [id, process] : agent->workers()) {
        if (!process->alive() || !meant(*process)) continue;
        const bool later = host.value > at || (host.value == at && slot >= fault.slot);
        ++slot;
        if (!before) before = process;
        if (!from && later) from = process;
      }
  }
  return from ? from : before;
}

void Cluster::strike(const Fault& fault, Process& process) {
  const WorkerId id = process.id();
  told(fmt::format("  it is worker {}", id.value));
  if (process.member().committed() == no_state) stepping_.newcomer_struck(queue_.now());
  tainted_.insert(id);
  switch (fault.kind) {
    case FaultKind::kill:
      if (fault.in == Point::now) return process.die(0, SIGKILL);
      return process.strike(fault.in, true);
    case FaultKind::fail:
      return process.die(1, 0);
    case FaultKind::exit_zero:
      somebody_exited_ = true;
      return process.die(0, 0);
    case FaultKind::hang:
      touched_.insert(id);
      return process.strike(fault.in, false);
    case FaultKind::slow:
      return process.slow_down(fault.number);
    case FaultKind::freeze:
      return freeze(process, fault.time);
    case FaultKind::lose_gpu:
      return lose_gpu(process);
    case FaultKind::spoil:
      stage_.spoiled[id].times = fault.number;
      return;
    default:
      return;
  }
}

void Cluster::freeze(Process& process, Duration time) {
  touched_.insert(process.id());
  process.freeze();
  queue_.after(time, [one = process.shared_from_this()] { one->thaw(); });
}

// The worker may hang at its next computation. Its slot is gone until the list of slots is next
// made from the host file.
void Cluster::lose_gpu(Process& process) {
  const job::workers::Worker* worker = job_->workers().find(process.id());
  if (!worker) return;
  const job::SlotId slot = worker->slot;
  touched_.insert(process.id());
  if (rng_.chance(0.5)) process.strike(Point::compute, false);
  feed(job::FromHost{slot.host, wire::agent::GpuLost{slot.index, "GPU", 79, "is lost"}});
  if (!controller_alive_) return;
  std::erase(file_slots_, slot);
  std::erase(joined_slots_, slot);
  tell_slots();
}

}  // namespace elasticrun::simulate::faults
