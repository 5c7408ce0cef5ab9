// What goes wrong, and what people ask for (cluster.hpp).
#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "simulate/cluster.hpp"

namespace elasticrun::simulate {

void Cluster::plan_next_fault() {
  const auto mean = scene_.fault_every.count();
  const Duration pause(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(2 * mean))));
  if (queue_.now() + pause > begin_ + scene_.faults_until) return;
  queue_.after(pause, [this] {
    if (!controller_alive_) return;
    ++outcome_.faults;
    if (scene_.planned && rng_.chance(0.4))
      person();
    else
      one_fault();
    plan_next_fault();
  });
}

std::shared_ptr<Agent> Cluster::some_agent() {
  std::vector<std::shared_ptr<Agent>> alive;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      if (agent->alive()) alive.push_back(agent);
  return alive.empty() ? nullptr : alive[rng_.below(alive.size())];
}

std::shared_ptr<Process> Cluster::some_process() {
  std::vector<std::shared_ptr<Process>> alive;
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs)
      for (const auto& [id, process] : agent->workers())
        if (process->alive()) alive.push_back(process);
  return alive.empty() ? nullptr : alive[rng_.below(alive.size())];
}

void Cluster::kill_one() {
  const auto process = some_process();
  if (!process) return;
  const bool signal = rng_.chance(0.7);
  told(fmt::format("fault: worker {} {}", process->id().value,
                   signal ? "is killed" : "fails with code 1"));
  signal ? process->die(0, SIGKILL) : process->die(1, 0);
}

// Its worker computes no more, and dies or hangs; its slot is there again when the hosts are told
// anew.
void Cluster::lose_gpu() {
  const auto process = some_process();
  if (!process) return;
  const auto worker = supervisor_->pool().workers().find(process->id());
  if (worker == supervisor_->pool().workers().end()) return;
  const job::SlotId slot = worker->second.slot;
  touched_.insert(process->id());
  told(fmt::format("fault: worker {} loses its GPU", process->id().value));
  if (rng_.chance(0.5)) process->hang();
  feed(job::FromHost{slot.host, wire::GpuLost{slot.index, "GPU", 79, "is lost"}});
  if (!controller_alive_) return;
  set_slots(supervisor_->pool().slots());
}

// A firewall that forgets one connection, or all of them. Who dials late is lost, as one that is
// silent is.
void Cluster::reset_connections() {
  const bool all = rng_.chance(0.5);
  const auto one = some_agent();
  told(all ? "fault: all connections are reset" : "fault: a connection is reset");
  for (const auto& [host, runs] : agents_)
    for (const auto& agent : runs) {
      if (!all && agent != one) continue;
      const bool late = rng_.chance(0.1);
      if (late)
        for (const auto& [id, process] : agent->workers()) touched_.insert(id);
      agent->reset(late ? stage_.between_us(50'000, 600'000) : stage_.between_us(100, 50'000));
    }
}

// Ctrl-Z, or a machine that is moved.
void Cluster::stop_controller(Duration time) {
  told(fmt::format("fault: the controller stands still for {}", to_text(time)));
  stands_still_ = true;
  queue_.after(time, [this, time] {
    stands_still_ = false;
    feed(job::StoodStill{time});
    for (const auto& event : std::exchange(missed_, {})) feed(event);
  });
}

// To one that starts: it greets its peers, and large messages do not pass.
void Cluster::spoil_a_link() {
  const auto process = some_process();
  if (!process || process->member().committed() != no_state) return;
  told(fmt::format("fault: no state reaches worker {}", process->id().value));
  stage_.unreachable.insert(process->id());
}

void Cluster::one_fault() {
  if (rng_.chance(0.15)) return reset_connections();
  if (rng_.chance(0.1)) return spoil_a_link();
  if (rng_.chance(0.05)) return stop_controller(std::chrono::milliseconds(5 + rng_.below(400)));
  const auto what = rng_.below(100);
  if (what < 20) return lose_gpu();
  if (what < 40) return kill_one();
  const Duration time = std::chrono::milliseconds(5 + rng_.below(600));
  if (what < 60) {
    const auto process = some_process();
    if (!process) return;
    touched_.insert(process->id());
    if (what < 45) {
      told(fmt::format("fault: worker {} hangs in compute", process->id().value));
      return process->hang();
    }
    if (what < 48) {
      told(fmt::format("fault: worker {} exits with 0", process->id().value));
      somebody_left_ = true;
      return process->die(0, 0);
    }
    if (what < 54) {
      told(fmt::format("fault: worker {} becomes slow", process->id().value));
      return process->slow_down(2 + static_cast<int>(rng_.below(4)));
    }
    told(fmt::format("fault: worker {} is frozen for {}", process->id().value, to_text(time)));
    process->freeze();
    return queue_.after(time, [process] { process->thaw(); });
  }
  const auto agent = some_agent();
  if (!agent) return;
  for (const auto& [id, process] : agent->workers()) touched_.insert(id);
  if (what < 75) {
    told(fmt::format("fault: a host is cut off for {}", to_text(time)));
    agent->cut();
    return queue_.after(time, [agent] { agent->heal(); });
  }
  if (what < 88) {
    const bool workers = rng_.chance(0.5);
    told(fmt::format("fault: an agent{} is frozen for {}", workers ? " and its host" : "",
                     to_text(time)));
    return agent->freeze(workers, time);
  }
  if (what < 95) {
    told("fault: an agent is killed");
    return agent->crash();
  }
  told("fault: a host loses power");
  agent->lose_power();
}

// The change that could give two worlds: those who leave hear of it, those who stay are cut off, or
// their agent does not run, and go on beside whatever forms without them.
void Cluster::shrink_and_cut() {
  told("a person wants 1 worker, and its host is cut off, or its agent frozen");
  feed(job::Scale{1});
  const auto members = supervisor_->membership().members();
  if (members.empty()) return;
  const auto worker = supervisor_->pool().workers().find(members.front());
  if (worker == supervisor_->pool().workers().end()) return;
  const auto agent = agents_[worker->second.slot.host].back();
  for (const auto& [id, process] : agent->workers()) touched_.insert(id);
  const Duration soon = stage_.between_us(1000, 40'000),
                 later = stage_.between_us(200'000, 900'000);
  if (rng_.chance(0.5)) return queue_.after(soon, [agent, later] { agent->freeze(false, later); });
  queue_.after(soon, [agent] { agent->cut(); });
  queue_.after(later, [agent] { agent->heal(); });
}

void Cluster::person() {
  if (rng_.chance(0.1)) return shrink_and_cut();
  const auto what = rng_.below(10);
  const auto count = static_cast<int>(rng_.below(all_slots_.size()) + 1);
  if (what < 5) {
    told(fmt::format("a person wants {} workers", count));
    return feed(job::Scale{count});
  }
  if (what < 9) {
    std::vector<job::SlotId> slots;
    for (const auto& slot : all_slots_)
      if (rng_.chance(0.7)) slots.push_back(slot);
    if (slots.empty()) slots = all_slots_;
    told(fmt::format("a person leaves {} slots in the host file", slots.size()));
    return set_slots(slots);
  }
  if (const auto process = some_process()) {
    told(fmt::format("worker {} leaves", process->id().value));
    somebody_left_ = true;
    process->leave();
  }
}

// From here on nothing goes wrong any more, so the job must come to its end.
void Cluster::heal_all() {
  told("everything is healed");
  stage_.unreachable.clear();
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
      for (const auto& agent : runs) agent->close(launcher::ControllerLost{"its port is closed"});
    return watch_for_the_end();
  }
  set_slots(all_slots_);
  if (scene_.interrupted) {
    told("a person interrupts");
    interrupted_ = true;
    feed(job::Interrupt{rng_.chance(0.5) ? SIGINT : SIGTERM});
    if (rng_.chance(0.3)) feed(job::Interrupt{SIGINT});
  }
}

}  // namespace elasticrun::simulate
