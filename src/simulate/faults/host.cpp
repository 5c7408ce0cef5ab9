// See host.hpp.
#include "simulate/faults/host.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace elasticrun::simulate::faults {

// ---------------------------------------------------------------- the connection

void Link::send(std::function<void()> message) {
  if (cut_) return held_.push_back(std::move(message));
  const Duration delay =
      std::chrono::microseconds(20 + rng_.below(rng_.chance(0.05) ? 20'000 : 800));
  last_ = std::max(last_, queue_.now() + delay);
  queue_.at(last_, std::move(message));
}

void Link::heal() {
  cut_ = false;
  for (auto& message : std::exchange(held_, {})) send(std::move(message));
}

// ---------------------------------------------------------------- the agent

Agent::Agent(Stage& stage, Handlers handlers)
    : stage_(stage),
      handlers_(std::move(handlers)),
      core_(
          {Term(1), stage.scene.spec.deadlines.lease, stage.scene.spec.deadlines.heartbeat,
           stage.scene.spec.deadlines.orphan_grace, stage.scene.spec.deadlines.standstill_timeout},
          stage.queue.now()),
      up_(stage.queue, stage.rng),
      down_(stage.queue, stage.rng) {}

void Agent::begin() {
  up([this] { handlers_.up(); });
  arm();
}

void Agent::now_or_thawed(std::function<void()> what) {
  if (!alive_) return;
  if (frozen_)
    deferred_.push_back(std::move(what));
  else
    what();
}

void Agent::up(std::function<void()> message) {
  up_.send([self = shared_from_this(), message = std::move(message)] {
    if (!self->closed_) message();
  });
}

void Agent::order(wire::agent::ToAgent order) {
  if (closed_ || (away_ && std::holds_alternative<wire::agent::Heartbeat>(order))) return;
  down_.send([this, self = shared_from_this(), order = std::move(order)] {
    now_or_thawed([this, order] { std::visit([this](const auto& o) { take(o); }, order); });
  });
}

void Agent::deliver(WorkerId worker, wire::ToWorker message) {
  if (closed_) return;
  down_.send([this, self = shared_from_this(), worker, message = std::move(message)] {
    now_or_thawed([this, worker, message] {
      const auto process = workers_.find(worker);
      if (process != workers_.end()) process->second->receive(message);
    });
  });
}

void Agent::close(launcher::agent::AgentEvent why) {
  if (std::exchange(closed_, why) || away_) return;
  down_.send([this, self = shared_from_this(), why] { now_or_thawed([this, why] { feed(why); }); });
}

void Agent::kill() {
  if (!reachable()) return;
  crash();
}

void Agent::arm() {
  const Time at = core_.wake_at();
  if (at == never || at >= armed_) return;
  armed_ = at;
  stage_.queue.at(at, [this, self = shared_from_this(), at] {
    if (armed_ != at) return;
    armed_ = never;
    now_or_thawed([this] { feed(launcher::agent::Tick{}); });
  });
}

void Agent::feed(const launcher::agent::AgentEvent& event) {
  if (!alive_) return;
  for (const auto& action : core_.step(event, stage_.queue.now())) act(action);
  if (alive_) arm();
}

void Agent::take(const wire::agent::Heartbeat& heartbeat) {
  feed(heartbeat);
  const wire::ToWorker lease = wire::Lease{core_.lease_ends().time_since_epoch().count()};
  for (const auto& [id, worker] : workers_) worker->receive(lease);
}

void Agent::act(const launcher::agent::AgentAction& action) {
  if (const auto* spawning = std::get_if<launcher::agent::Spawn>(&action)) {
    spawn(spawning->order);
  } else if (const auto* signal = std::get_if<launcher::agent::Signal>(&action)) {
    const auto worker = workers_.find(signal->worker);
    if (worker != workers_.end()) worker->second->signal(signal->signal);
  } else if (const auto* kill = std::get_if<launcher::agent::KillTree>(&action)) {
    kill_worker(kill->worker);
  } else if (const auto* report = std::get_if<launcher::agent::Report>(&action)) {
    up([this, message = report->message] { handlers_.report(message); });
  } else if (const auto* end = std::get_if<launcher::agent::EndAgent>(&action)) {
    ended(end->reason);
  }
}

void Agent::spawn(const wire::agent::StartWorker& order) {
  const WorkerId id = order.worker;
  if (const auto other = in_slots_.find(order.slot); other != in_slots_.end())
    stage_.invariants.slot_taken(id, other->second, workers_.at(other->second)->kept());
  stage_.queue.after(
      stage_.between_us(200, 3000), [this, self = shared_from_this(), id, slot = order.slot] {
        now_or_thawed([this, id, slot] {
          if (stage_.rng.chance(0.005))
            return feed(launcher::agent::ProcessFailed{id, 121, "fork: no memory"});
          in_slots_[slot] = id;
          auto& process = workers_[id];
          process = std::make_shared<Process>(stage_, id, handlers_of(id));
          process->begin();
          feed(launcher::agent::ProcessStarted{id, static_cast<std::int32_t>(id.value)});
        });
      });
}

Process::Handlers Agent::handlers_of(WorkerId id) {
  // The agent learns what its kernel knows a little later.
  const auto learns = [this](Duration after, launcher::agent::AgentEvent event) {
    stage_.queue.after(after, [this, self = shared_from_this(), event = std::move(event)] {
      now_or_thawed([this, event] { feed(event); });
    });
  };
  return {
      .send =
          [this, id](wire::FromWorker message) {
            now_or_thawed([this, id, message = std::move(message)] {
              up([this, id, message] { handlers_.message(id, message); });
            });
          },
      .dies =
          [this, id, learns](int code, int signal) {
            learns(stage_.between_us(10, 500), launcher::agent::ProcessDies{id, code, signal});
          },
      .exited =
          [this, id, learns](int code, int signal) {
            std::erase_if(in_slots_, [&](auto& in) { return in.second == id; });
            learns(stage_.between_us(10, 3000), launcher::agent::ProcessExited{id, code, signal});
          }};
}

void Agent::kill_worker(WorkerId worker) {
  const auto process = workers_.find(worker);
  if (process == workers_.end()) return;
  stage_.queue.after(stage_.between_us(10, 500), [p = process->second] { p->die(0, SIGKILL); });
}

// The agent is gone: its kernel closes the connection, or its watchdog reports the end. Messages it
// had sent arrive first.
void Agent::ended(const std::string& reason) {
  alive_ = false;
  if (std::exchange(away_, false)) heal();
  up([this, reason] { handlers_.down(reason); });
}

// ---------------------------------------------------------------- what happens to it

// Both kernels end a connection over which nothing is confirmed: the agent's first, after a quarter
// of the lease, and the controller's after a whole one.
void Agent::cut() {
  cut_ = true;
  up_.cut();
  down_.cut();
  stage_.queue.after(stage_.scene.spec.deadlines.lease / 4,
                     [self = shared_from_this(), cut = ++cuts_] {
                       if (self->cut_ && self->cuts_ == cut) self->lose_connection();
                     });
}

void Agent::lose_connection() {
  if (!alive_ || closed_ || std::exchange(away_, true)) return;
  now_or_thawed([this] { feed(launcher::agent::ConnectionLost{}); });
  stage_.queue.after(stage_.scene.spec.deadlines.lease * 3 / 4,
                     [self = shared_from_this(), cut = cuts_] {
                       if (self->away_ && self->cuts_ == cut) self->controller_loses_connection();
                     });
  dial();
}

void Agent::controller_loses_connection() {
  if (!closed_) handlers_.away();
}

void Agent::heal() {
  cut_ = false;
  if (away_) return;
  up_.heal();
  down_.heal();
}

// Messages that are under way and not acknowledged are sent again, in order, over the next
// connection.
void Agent::reset(Duration time) {
  if (!alive_ || closed_ || std::exchange(away_, true)) return;
  up_.cut();
  down_.cut();
  handlers_.away();
  now_or_thawed([this] { feed(launcher::agent::ConnectionLost{}); });
  stage_.queue.after(time, [self = shared_from_this()] { self->dial(); });
}

void Agent::dial() {
  if (!alive_) return;
  if (frozen_ || cut_)
    return stage_.queue.after(std::chrono::milliseconds(20),
                              [self = shared_from_this()] { self->dial(); });
  if (closed_) return feed(*closed_);
  away_ = false;
  handlers_.back();
  heal();
  feed(launcher::agent::Reconnected{});
}

void Agent::freeze(bool workers, Duration time) {
  frozen_ = true;
  for (const auto& [id, worker] : workers_)
    if (workers) worker->freeze();
  stage_.queue.after(time, [self = shared_from_this()] { self->thaw(); });
}

// The processes resume in any order, possibly long after the lease has ended.
void Agent::thaw() {
  frozen_ = false;
  const auto thaw_workers = [this] {
    for (const auto& [id, worker] : workers_) worker->thaw();
  };
  const bool workers_first = stage_.rng.chance(0.5);
  if (workers_first) thaw_workers();
  for (auto& what : std::exchange(deferred_, {})) now_or_thawed(std::move(what));
  if (!workers_first) thaw_workers();
}

void Agent::crash() {
  if (!alive_) return;
  ended("the agent was killed");
  for (const auto& [id, worker] : workers_)
    stage_.queue.after(stage_.between_us(10, 3000), [p = worker] { p->die(0, SIGKILL); });
}

void Agent::lose_power() {
  alive_ = false;
  stage_.queue.after(stage_.scene.spec.deadlines.lease,
                     [self = shared_from_this()] { self->controller_loses_connection(); });
  for (const auto& [id, worker] : workers_) worker->die(0, SIGKILL);
}

}  // namespace elasticrun::simulate::faults
