// A simulated host: the real core of an agent, its workers, and the connection to the controller,
// with everything that can happen to a machine.
//
// Each direction of the connection keeps the order of its messages, as TCP does. A cut connection
// holds messages until it is healed, and a frozen end reads nothing.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/agent_core.hpp"
#include "simulate/faults/process.hpp"

namespace elasticrun::simulate::faults {

// One direction of a connection.
class Link {
 public:
  Link(Queue& queue, Rng& rng) : queue_(queue), rng_(rng) {}
  void send(std::function<void()> message);
  void cut() { cut_ = true; }
  void heal();

 private:
  Queue& queue_;
  Rng& rng_;
  Time last_{};
  bool cut_ = false;
  std::deque<std::function<void()>> held_;
};

// One run of an agent on a host.
class Agent : public std::enable_shared_from_this<Agent> {
 public:
  struct Handlers {  // at the controller's end
    std::function<void()> up;
    std::function<void(const std::string& reason)> down;
    std::function<void()> away, back;  // the connection was reset; the agent has dialled again
    std::function<void(WorkerId, wire::FromWorker)> message;
    std::function<void(wire::agent::FromAgent)> report;
  };
  Agent(Stage& stage, Handlers handlers);

  void begin();
  // ---- the controller's end
  void order(wire::agent::ToAgent order);
  void deliver(WorkerId worker, wire::ToWorker message);
  // The controller stops listening to this agent: it has given the host up, or is gone itself.
  void close(launcher::agent::AgentEvent why);
  void kill();  // the executor's kill, where it can be reached
  // ---- what happens to it
  void cut();
  void heal();
  // Resets the connection; after `time` the agent has dialled again, if it can.
  void reset(Duration time);
  // Freezes the agent for `time`; with `workers`, its workers as well.
  void freeze(bool workers, Duration time);
  void thaw();
  void crash();       // the agent dies and its watchdog cleans up
  void lose_power();  // all processes die, and no message about it is sent

  bool alive() const { return alive_; }
  bool away() const { return away_; }
  bool reachable() const { return alive_ && !frozen_ && !cut_; }
  const std::map<WorkerId, std::shared_ptr<Process>>& workers() const { return workers_; }

 private:
  void take(const wire::agent::BundlePart&) {}  // simulated hosts have every program already
  void take(const wire::agent::HoldOutput&) {}  // simulated programs print nothing
  void take(const wire::agent::Heartbeat& heartbeat);
  void take(const auto& order) { feed(order); }
  void dial();
  void lose_connection();
  void controller_loses_connection();
  void feed(const launcher::agent::AgentEvent& event);
  void act(const launcher::agent::AgentAction& action);
  void spawn(const wire::agent::StartWorker& order);
  Process::Handlers handlers_of(WorkerId id);
  void kill_worker(WorkerId worker);
  void arm();
  void ended(const std::string& reason);
  void now_or_thawed(std::function<void()> what);
  void up(std::function<void()> message);

  Stage& stage_;
  Handlers handlers_;
  launcher::agent::AgentCore core_;
  Link up_, down_;
  std::map<WorkerId, std::shared_ptr<Process>> workers_;
  std::map<std::int32_t, WorkerId> in_slots_;  // until all of the worker is gone
  bool alive_ = true, frozen_ = false, cut_ = false, away_ = false;
  int cuts_ = 0;  // so far; a timer of an earlier cut does nothing
  std::optional<launcher::agent::AgentEvent>
      closed_;  // the reason, once the controller has stopped listening to this agent
  Time armed_ = never;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace elasticrun::simulate::faults
