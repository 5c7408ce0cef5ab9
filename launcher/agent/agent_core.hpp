// What an agent decides: which worker to start, to signal and to kill, and when to end itself.
//
// The intuition: an agent is an arm of the controller, with one idea of its own: that nothing may
// outlive the job. So it obeys orders, and everything else in here is a deadline that ends in
// killing. The lease is the most important one: it runs from the newest heartbeat of ours that the
// controller has sent back, and when it ends, we kill our workers. The controller knows when that
// is and may then form a world without them although it cannot see them any more. Never two worlds
// depends on it, so no other order prolongs it: one may have been under way for long.
//
// Pure: the driver (agent.cpp) feeds events and does the actions; the simulator does so, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::launcher::agent {

struct AgentLimits {
  Term term;
  Duration lease{};         // from a heartbeat that came back to the kill of everything
  Duration heartbeat{};     // between two signs of life of ours
  Duration orphan_grace{};  // from the loss of the controller to the kill; the lease may cut it
};

// ---------------------------------------------------------------- events (orders are
// wire::ToAgent)

struct ProcessStarted {
  WorkerId worker;
  std::int32_t pid = 0;
};
// It never ran; code as in wire::StartFailed.
struct ProcessFailed {
  WorkerId worker;
  std::int32_t code = 0;
  std::string reason;
};
// The worker and every process it had started are gone.
struct ProcessExited {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
};
// The control connection is lost; another one is being made. The lease goes on.
struct ConnectionLost {};
struct Reconnected {};
// The controller is gone for good.
struct ControllerLost {
  std::string reason;
};
// The controller has given this host up, and may have a world without it already.
struct GivenUp {
  std::string reason;
};
// Somebody on this host asks the agent to end (SIGTERM).
struct Terminated {};
// The watchdog above us is gone: nobody would clean up after us any more.
struct WatchdogLost {};
struct Tick {};

using AgentEvent =
    std::variant<wire::StartWorker, wire::StopWorker, wire::SignalWorker, wire::Heartbeat,
                 wire::Shutdown, ProcessStarted, ProcessFailed, ProcessExited, ConnectionLost,
                 Reconnected, ControllerLost, GivenUp, Terminated, WatchdogLost, Tick>;

// ---------------------------------------------------------------- actions

struct Spawn {
  wire::StartWorker order;
};
// To the process group of the worker.
struct Signal {
  WorkerId worker;
  std::int32_t signal = 0;
};
// SIGKILL to its group and to every descendant, wherever that went.
struct KillTree {
  WorkerId worker;
};
// It is to end: if it has not been started yet, because its program is still being copied, then it
// need not be, and counts as ended by a signal.
struct CallOff {
  WorkerId worker;
};
struct Report {
  wire::FromAgent message;
};
// Comes once, as the last action: no worker is left, or one could not be killed.
struct EndAgent {
  int exit_code = 0;
  std::string reason;
};

using AgentAction = std::variant<Spawn, Signal, KillTree, CallOff, Report, EndAgent>;

// ----------------------------------------------------------------

class AgentCore {
 public:
  AgentCore(const AgentLimits& limits, Time now);

  std::vector<AgentAction> step(const AgentEvent& event, Time now);
  // When to call step with a Tick at the latest.
  Time wake_at() const;
  // When every worker is killed, if no heartbeat comes back before; never: that was done.
  Time lease_ends() const { return lease_ends_; }

 private:
  enum class Phase { starting, running, killed };
  struct Worker {
    Phase phase = Phase::starting;
    Time kill_at = never;               // while it is being stopped
    std::int32_t stop_signal = 0;       // the one it has got for stopping, 0: none
    std::vector<std::int32_t> waiting;  // signals for after its start, each once
  };
  using Workers = std::map<WorkerId, Worker>;
  // To one that is away no heartbeats are sent, and reports wait for the next connection.
  enum class Controller { connected, away, gone };

  void on(const wire::StartWorker& order, Time now);
  void on(const wire::StopWorker& order, Time now);
  void on(const wire::SignalWorker& order, Time now);
  void on(const wire::Heartbeat& order, Time now);
  void on(const wire::Shutdown& order, Time now);
  void on(const ProcessStarted& event, Time now);
  void on(const ProcessFailed& event, Time now);
  void on(const ProcessExited& event, Time now);
  void on(const ConnectionLost&, Time) { controller_ = Controller::away; }
  void on(const Reconnected&, Time now);
  void on(const ControllerLost& event, Time now);
  void on(const GivenUp& event, Time now);
  void on(const Terminated& event, Time now);
  void on(const WatchdogLost& event, Time now);
  void on(const Tick&, Time) {}

  void stop(Workers::value_type& worker, std::int32_t signal, Duration grace, Time now);
  void send_signal(Workers::value_type& worker, std::int32_t signal);
  void kill(Workers::value_type& worker);
  void kill_all(Time now);
  void end_with(int exit_code, std::string reason, Duration grace, Time now);
  void host_ends(int exit_code, std::string reason);
  void finish(WorkerId worker);
  void report(wire::FromAgent message);
  void deadlines(Time now);

  AgentLimits limits_;
  Time lease_ends_;
  Time next_heartbeat_;
  Controller controller_ = Controller::connected;
  bool host_ends_ = false;          // by our decision, not by an order
  std::optional<EndAgent> ending_;  // what to end with once the workers are gone
  Time give_up_at_ = never;         // then it ends although a worker could not be killed
  bool ended_ = false;
  Workers workers_;
  std::set<WorkerId> finished_;  // the newest ones, so that a repeated order is recognised
  std::vector<AgentAction> actions_;
};

}  // namespace elasticrun::launcher::agent
