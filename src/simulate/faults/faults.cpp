// Carries out the faults of a scene, or skips them (cluster.hpp).
//
// A job in which every holder of the state is struck ends early, and the rest of its run shows
// nothing. So most scenes are merciful: a fault that would leave less than a majority of the world
// does not happen.
#include <algorithm>
#include <csignal>

#include "simulate/faults/cluster.hpp"

namespace elasticrun::simulate::faults {

void Cluster::befall(const Fault& fault) {
  if (!controller_alive_) return;
  if (scene_.merciful && !is_bearable(fault)) return told("spared: " + fault_text(fault));
  told("fault: " + fault_text(fault));
  ++outcome_.faults;
  happen(fault);
}

void Cluster::happen(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::scale:
    case FaultKind::edit:
    case FaultKind::leave:
    case FaultKind::shrink_and_cut:
      return person(fault);
    case FaultKind::link_drops:
    case FaultKind::link_small:
    case FaultKind::link_one_way:
      return spoil_link(fault);
    case FaultKind::cut:
    case FaultKind::reset:
    case FaultKind::reset_all:
    case FaultKind::freeze_agent:
    case FaultKind::freeze_host:
    case FaultKind::kill_agent:
    case FaultKind::power:
    case FaultKind::notice:
    case FaultKind::join:
      return strike_host(fault);
    case FaultKind::stand_still:
      return stop_controller(fault.time);
    default:
      if (const auto process = worker_of(fault)) strike(fault, *process);
  }
}

// ---------------------------------------------------------------- mercy

bool Cluster::is_well(const Agent& agent, HostId host, const Process& process) const {
  const auto spoiled = stage_.spoiled.find(process.id());
  return process.alive() && !process.frozen() && !process.is_struck() && agent.reachable() &&
         !plane_.links().touches(host) &&
         (spoiled == stage_.spoiled.end() || spoiled->second.times == 0);
}

// The workers that may drop out of the world because of the fault.
std::set<WorkerId> Cluster::victims(const Fault& fault) const {
  std::set<WorkerId> found;
  const auto add_workers_of = [&](const Agent& agent) {
    for (const auto& [id, process] : agent.workers()) found.insert(id);
  };
  const auto add_all = [&] {
    for (const auto& [host, runs] : agents_)
      for (const auto& agent : runs) add_workers_of(*agent);
  };
  const bool late = fault.time >= rendezvous::Suspects::patience / 2;
  switch (fault.kind) {
    case FaultKind::reset:
      if (!late) return {};
      break;
    case FaultKind::reset_all:
      if (late) add_all();
      return found;
    case FaultKind::stand_still:  // all workers wait for the controller
    case FaultKind::scale:
    case FaultKind::edit:
    case FaultKind::join:
    case FaultKind::notice:
    case FaultKind::slow:
      return {};
    case FaultKind::leave:
    case FaultKind::kill:
    case FaultKind::fail:
    case FaultKind::exit_zero:
    case FaultKind::hang:
    case FaultKind::freeze:
    case FaultKind::lose_gpu:
    case FaultKind::spoil:
      if (const auto process = worker_of(fault)) found.insert(process->id());
      return found;
    default:
      break;
  }
  if (const auto agent = agent_of(fault)) add_workers_of(*agent);
  return found;
}

// Whether a majority of the world stays, all of it healthy and one of them with the newest state.
// Before the first world is formed, the first workers may not be struck at all.
bool Cluster::is_bearable(const Fault& fault) const {
  // The leaving members still have the state, and training should go on with it.
  if (fault.kind == FaultKind::shrink_and_cut && fault.number == 2) return true;
  const std::set<WorkerId> struck = victims(fault);
  if (struck.empty()) return true;
  const auto members = job_->membership().members();
  std::size_t stay = 0, others = 0;
  bool holder = false;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      for (const auto& [id, process] : agent->workers()) {
        if (struck.contains(id) || !is_well(*agent, host, *process)) continue;
        const bool member = std::ranges::count(members, id) > 0;
        ++(member ? stay : others);
        holder |=
            member && process->in_train() && invariants_.is_newest(process->member().committed());
      }
  const bool any = std::ranges::any_of(members, [&](WorkerId id) { return struck.contains(id); });
  if (!any && job_->membership().ever_formed()) return true;
  const auto minimum = static_cast<std::size_t>(scene_.spec.limits.min);
  return holder && 2 * stay > members.size() && stay + others >= minimum;
}

// ---------------------------------------------------------------- the end of all faults

// From here on there are no more faults, so the job must come to its end.
void Cluster::heal_all() {
  told("everything is healed");
  stage_.spoiled.clear();
  plane_.change_links([](Links& links) { links.heal(); });
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs) {
      agent->heal();
      agent->thaw();
    }
  if (!controller_alive_) return;
  if (scene_.controller_dies) {
    told("the controller is killed");
    controller_alive_ = false;
    for (const auto& [host, runs] : agents_)
      for (const auto& agent : runs)
        agent->close(launcher::agent::ControllerLost{"its port is closed"});
    return watch_for_the_end();
  }
  file_slots_ = all_slots_;
  tell_slots();
  stepping_.healed(queue_.now());
  if (scene_.interrupted) {
    told("a person interrupts");
    interrupted_ = true;
    feed(job::Interrupt{rng_.chance(0.5) ? SIGINT : SIGTERM});
    if (rng_.chance(0.3))
      queue_.after(stage_.between_us(0, 3'000'000), [this] { feed(job::Interrupt{SIGINT}); });
  }
}

}  // namespace elasticrun::simulate::faults
