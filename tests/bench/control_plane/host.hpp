// A simulated host: the real core of an agent, and stubs for its workers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/agent/agent_core.hpp"
#include "tests/bench/control_plane/messages.hpp"
#include "tests/bench/control_plane/training.hpp"
#include "tests/bench/control_plane/worker.hpp"

namespace elasticrun::bench {

// What all hosts share.
struct Cluster {
  simulate::Queue& queue;
  Training& training;
  std::map<WorkerId, std::shared_ptr<StubWorker>>& workers;  // the live ones
  launcher::agent::AgentLimits limits;
  MessageReader messages;
};

// Handlers that pass what training reports to the workers that are alive.
Training::Handlers handlers_of_training(
    const std::map<WorkerId, std::shared_ptr<StubWorker>>& workers);

// One run of an agent.
class StubHost : public std::enable_shared_from_this<StubHost> {
 public:
  struct Uplink {  // to the controller
    std::function<void(WorkerId worker, std::string_view payload)> send;
    std::function<void(wire::agent::Heartbeat heartbeat)>
        send_heartbeat;  // with the count of frames received; a passing frame
  };
  StubHost(Cluster& cluster, Uplink uplink);

  void begin() { arm(); }
  // Takes a frame from the controller.
  void receive(WorkerId worker, std::string_view payload);
  // Kills the agent and its workers; they send nothing more.
  void die();
  bool alive() const { return alive_; }
  const std::map<WorkerId, std::shared_ptr<StubWorker>>& workers() const { return workers_; }

 private:
  void relay(WorkerId to, std::string_view message);
  void later(Duration delay, std::function<void()> what);
  void take(const wire::agent::Heartbeat& heartbeat) { feed(heartbeat); }
  void take(const wire::agent::BundlePart&) {}
  void take(const wire::agent::HoldOutput&) {}
  void take(const auto& order) { feed(order); }
  void feed(const launcher::agent::AgentEvent& event);
  void act(const launcher::agent::Spawn& action);
  void act(const launcher::agent::Signal& action);
  void act(const launcher::agent::KillTree& action);
  void act(const launcher::agent::CallOff&) {}
  void act(const launcher::agent::Report& action);
  void act(const launcher::agent::EndAgent& action);
  void end_worker(WorkerId worker, int signal);
  void arm();

  Cluster& cluster_;
  Uplink uplink_;
  const Time began_;
  launcher::agent::AgentCore core_;
  std::map<WorkerId, std::shared_ptr<StubWorker>> workers_;
  bool alive_ = true;
  Time armed_ = never;
};

}  // namespace elasticrun::bench
