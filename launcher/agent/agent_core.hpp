// What an agent decides: which worker to start, to signal and to kill, and when to end itself.
//
// The intuition: an agent is an arm of the controller with one idea of its own, that nothing may
// outlive the job. So it obeys orders, and everything else in here is a deadline that ends in
// killing. The lease is the most important one: it runs from the newest of our heartbeats that the
// controller has sent back, and after its end our workers make no step. The controller knows when
// that is, and may then form a world without them although it no longer reaches them. That there
// are never two worlds depends on the lease, so no other order prolongs it: an order may have been
// under way for a long time.
//
// At the end of the lease we kill our workers, except if the controller is stopped or suspended:
// its machine confirms what we send, but its program does not answer. It decides nothing in that
// time, so the workers keep their state until it resumes, or until the standstill is over.
//
// Pure: the driver (agent.cpp) feeds events and carries out the actions; so does the simulator.
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
#include "launcher/agent/workers/error_file.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent {

// What TERM to an agent asks for: that this host ends, as a user means who has let it join; that
// the job stops, as a batch system means that signals all processes of a step; or either, if all
// processes of a machine may have got it.
enum class SignalMeans { host_ends, job_stops, either };

struct AgentLimits {
  Term term;
  Duration lease{};         // from sending a heartbeat that came back to the last step of a worker
  Duration heartbeat{};     // between two heartbeats of ours
  Duration orphan_grace{};  // from losing the controller to the kill; the lease may cut it
  Duration standstill{};    // beyond the lease: how long a stopped controller keeps its workers
  SignalMeans signal_means = SignalMeans::host_ends;
};

// ---------------------------------------------------------------- events, beside
// wire::agent::ToAgent

struct ProcessStarted {
  WorkerId worker;
  std::int32_t pid = 0;
};
// The worker never ran; code as in wire::agent::StartFailed.
struct ProcessFailed {
  WorkerId worker;
  std::int32_t code = 0;
  std::string reason;
};
// The worker's process is dying; as in wire::agent::WorkerDies.
struct ProcessDies {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  std::string error = {};
};
// The worker and every process it had started are gone.
struct ProcessExited {
  WorkerId worker;
  std::int32_t code = 0;
  std::int32_t signal = 0;
  workers::WrittenError error = {};
  std::uint16_t free_port = 0;  // as in wire::agent::WorkerExited
};
// The control connection is lost and is being dialled again. The lease runs on.
struct ConnectionLost {};
// Its machine has accepted a connection and confirms what is sent there, but no program answers.
struct ControllerStandsStill {};
struct Reconnected {};
// The controller is gone for good.
struct ControllerLost {
  std::string reason;
};
// The controller has given this host up, and may already have a world without it.
struct GivenUp {
  std::string reason;
};
// The agent got this signal from a user, a program or a batch system.
struct Terminated {
  std::int32_t signal = 15;
};
// The watchdog above us is gone: if we died now, nothing would clean up after us.
struct WatchdogLost {};
struct Tick {};

using AgentEvent =
    std::variant<wire::agent::StartWorker, wire::agent::StopWorker, wire::agent::SignalWorker,
                 wire::agent::Heartbeat, wire::agent::Shutdown, ProcessStarted, ProcessFailed,
                 ProcessDies, ProcessExited, ConnectionLost, ControllerStandsStill, Reconnected,
                 ControllerLost, GivenUp, Terminated, WatchdogLost, Tick>;

// ---------------------------------------------------------------- actions

struct Spawn {
  wire::agent::StartWorker order;
};
// Send the signal to the process group of the worker.
struct Signal {
  WorkerId worker;
  std::int32_t signal = 0;
};
// SIGKILL to the worker's process group and to every descendant, wherever that has moved.
struct KillTree {
  WorkerId worker;
};
// The worker is to end. If it has not been started yet, because its program is still being copied,
// the agent does not start it, and it counts as ended by a signal.
struct CallOff {
  WorkerId worker;
};
struct Report {
  wire::agent::FromAgent message;
};
// Comes once, as the last action: no worker is left, or one could not be killed.
struct EndAgent {
  int exit_code = 0;
  std::string reason;
  bool in_silence = false;  // because the controller was silent for a whole lease
};

using AgentAction = std::variant<Spawn, Signal, KillTree, CallOff, Report, EndAgent>;

// ----------------------------------------------------------------

class AgentCore {
 public:
  AgentCore(const AgentLimits& limits, Time now);

  std::vector<AgentAction> step(const AgentEvent& event, Time now);
  // When to call step with a Tick, unless another event comes before.
  Time wake_at() const;
  // From then on the workers make no step, unless another heartbeat comes back; never: they were
  // killed.
  Time lease_ends() const { return lease_ends_; }

 private:
  enum class Phase { starting, running, killed };
  struct Worker {
    Phase phase = Phase::starting;
    Time kill_at = never;               // end of the grace time while it is being stopped
    std::int32_t stop_signal = 0;       // signal sent to stop it; 0: none yet
    std::vector<std::int32_t> waiting;  // signals to send after its start, each once
  };
  using Workers = std::map<WorkerId, Worker>;
  // While the controller is away no heartbeats are sent, and reports wait for the next connection.
  enum class Controller { connected, away, gone };

  void on(const wire::agent::StartWorker& order, Time now);
  void on(const wire::agent::StopWorker& order, Time now);
  void on(const wire::agent::SignalWorker& order, Time now);
  void on(const wire::agent::Heartbeat& order, Time now);
  void on(const wire::agent::Shutdown& order, Time now);
  void on(const ProcessStarted& event, Time now);
  void on(const ProcessFailed& event, Time now);
  void on(const ProcessDies& event, Time now);
  void on(const ProcessExited& event, Time now);
  void on(const ConnectionLost&, Time now);
  void on(const ControllerStandsStill&, Time now) { answers_until_ = now + limits_.lease; }
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
  void report(wire::agent::FromAgent message);
  bool keeps_workers(Time now) const;
  void deadlines(Time now);

  AgentLimits limits_;
  Time lease_ends_;
  Time next_heartbeat_;
  Time last_step_;  // newest call of step
  // Without a connection: until then the controller's machine counts as reachable.
  Time answers_until_ = Time::min();
  // Silence of the controller since the end of the lease. Time in which this process was stopped
  // itself does not count.
  Duration stood_still_ = Duration::zero();
  Controller controller_ = Controller::connected;
  std::int32_t asked_by_ = 0;       // the first signal; 0: none
  Time ask_at_ = never;             // when the controller learns of it
  bool host_ends_ = false;          // by our own decision, not by an order
  std::optional<EndAgent> ending_;  // what to end with once the workers are gone
  Time give_up_at_ = never;         // when the agent ends although a worker could not be killed
  bool ended_ = false;
  Workers workers_;
  std::set<WorkerId> finished_;  // the newest ones, to recognise a repeated order
  std::vector<AgentAction> actions_;
};

}  // namespace elasticrun::launcher::agent
