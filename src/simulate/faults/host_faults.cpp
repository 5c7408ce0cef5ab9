// Faults of hosts, of the paths between hosts, and of the controller (faults.cpp).
#include <algorithm>
#include <functional>
#include <utility>

#include "simulate/faults/cluster.hpp"

namespace elasticrun::simulate::faults {

// The first living agent from the fault's host on.
std::shared_ptr<Agent> Cluster::agent_of(const Fault& fault) const {
  std::shared_ptr<Agent> before, from;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs) {
      if (!agent->alive()) continue;
      if (!before) before = agent;
      if (!from && host.value >= static_cast<std::uint64_t>(fault.host)) from = agent;
    }
  return from ? from : before;
}

HostId Cluster::host_of(const Agent& agent) const {
  const auto found = std::ranges::find_if(agents_, [&](const auto& one) {
    return std::ranges::any_of(one.second, [&](const auto& run) { return run.get() == &agent; });
  });
  return found->first;
}

void Cluster::touch_all(const Agent& agent) {
  for (const auto& [id, process] : agent.workers()) {
    touched_.insert(id);
    tainted_.insert(id);
  }
}

// As the driver does, takes the slots of the host away, but never the last ones: people do that.
void Cluster::give_notice(HostId host) {
  const auto elsewhere = [&](job::SlotId slot) { return slot.host != host; };
  if (std::ranges::none_of(file_slots_, elsewhere)) return;
  feed(job::FromHost{host, wire::agent::HostLeaves{"is told to"}});
  if (!controller_alive_) return;
  std::erase_if(file_slots_, std::not_fn(elsewhere));
  std::erase_if(joined_slots_, std::not_fn(elsewhere));
  tell_slots();
}

void Cluster::strike_host(const Fault& fault) {
  if (fault.kind == FaultKind::join) return join(fault);
  if (fault.kind == FaultKind::reset_all) return reset_all(fault.time);
  const auto agent = agent_of(fault);
  if (!agent) return;
  if (fault.kind == FaultKind::reset) return reset(*agent, fault.time);
  if (fault.kind == FaultKind::notice) return give_notice(host_of(*agent));
  touch_all(*agent);
  switch (fault.kind) {
    case FaultKind::cut:
      agent->cut();
      return queue_.after(fault.time, [agent] { agent->heal(); });
    case FaultKind::freeze_agent:
      return agent->freeze(false, fault.time);
    case FaultKind::freeze_host:
      return agent->freeze(true, fault.time);
    case FaultKind::kill_agent:
      return agent->crash();
    default:
      return agent->lose_power();
  }
}

// As by a firewall that forgets a connection. An agent that dials again too late counts as lost,
// just as a silent one does.
void Cluster::reset(Agent& agent, Duration time) {
  if (time >= std::chrono::milliseconds(50)) touch_all(agent);
  agent.reset(time);
}

// Each agent dials again after a time of its own.
void Cluster::reset_all(Duration time) {
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      reset(*agent, Duration(static_cast<std::int64_t>(
                        rng_.below(static_cast<std::uint64_t>(time.count()) + 1))));
}

// Each joining host gets a new number, as the roster assigns them, and runs one agent.
void Cluster::join(const Fault& fault) {
  const HostId host(static_cast<std::uint64_t>(scene_.hosts) + agents_joined_ + 1);
  if (++agents_joined_ > 3) return;
  for (int slot = 0; slot <= fault.slot; ++slot) joined_slots_.push_back({host, slot});
  make_agent(host)->begin();
}

void Cluster::joined_host_is_gone(HostId host) {
  const auto gone = std::erase_if(joined_slots_, [&](job::SlotId s) { return s.host == host; });
  if (gone > 0) tell_slots();
}

void Cluster::spoil_link(const Fault& fault) {
  const HostId a(static_cast<std::uint64_t>(fault.host)),
      b(static_cast<std::uint64_t>(fault.number));
  if (a == b) return;
  const auto loss = fault.kind == FaultKind::link_small ? Links::Loss::large : Links::Loss::all;
  const auto taint = [this, a, b] {
    for (const HostId host : {a, b})
      for (const auto& agent : agents_[host])
        for (const auto& [id, process] : agent->workers()) tainted_.insert(id);
  };
  taint();
  plane_.change_links([&](Links& links) {
    links.spoil(a, b, loss);
    if (fault.kind != FaultKind::link_one_way) links.spoil(b, a, loss);
  });
  queue_.after(fault.time, [this, a, b, taint] {
    taint();
    plane_.change_links([&](Links& links) { links.heal(a, b); });
  });
}

// As by Ctrl-Z, or when the controller's machine is migrated.
void Cluster::stop_controller(Duration time) {
  if (std::exchange(stands_still_, true)) return;
  queue_.after(time, [this, time] {
    stands_still_ = false;
    feed(job::StoodStill{time});
    for (const auto& event : std::exchange(missed_, {})) feed(event);
  });
}

}  // namespace elasticrun::simulate::faults
