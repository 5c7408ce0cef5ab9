// See agent.hpp. One thread with one io_context; others only wait for lifelines, without locks.
// Every event goes through `step`, so that the core sees them in one order. Messages between
// controller and worker libraries are passed on unread.
#include "launcher/agent/agent.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <optional>
#include <utility>

#include "base/boot_clock.hpp"
#include "launcher/agent/agent_core.hpp"
#include "launcher/agent/join.hpp"
#include "launcher/agent/launcher_channel.hpp"
#include "launcher/agent/limits.hpp"
#include "launcher/agent/link/controller_link.hpp"
#include "launcher/agent/link/goodbye.hpp"
#include "launcher/agent/log.hpp"
#include "launcher/agent/notice.hpp"
#include "launcher/agent/orphaned_job.hpp"
#include "launcher/agent/worker_processes.hpp"
#include "launcher/agent/workers/gpu_watch.hpp"
#include "launcher/agent/workers/private_directory.hpp"
#include "launcher/agent/workers/processes.hpp"
#include "launcher/agent/workers/worker_socket.hpp"
#include "launcher/machine/descriptors.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/machine/network.hpp"
#include "wire/codec.hpp"

namespace elasticrun::launcher::agent {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

class Agent {
 public:
  Agent(const executors::AgentStart& start, const Guarded& guarded, bool by_hand);
  EndAgent run();

 private:
  void watch_signals();
  workers::WorkerSocket::Handlers handlers_of_socket();
  WorkerProcesses::Handlers handlers_of_processes();
  link::ControllerLink::Handlers handlers_of_link();
  void connected(const Result<link::Dialled>& reached);
  void go_on_alone(const AgentEvent& why);
  void frame(WorkerId worker, std::string_view payload);

  void take(const wire::agent::BundlePart& part) { processes_.take(part); }
  void take(const wire::agent::HoldOutput& order) {
    held_ = order.hold;
    processes_.resume_output();
  }
  void take(const wire::agent::Heartbeat& heartbeat) {
    controller_.acknowledged(heartbeat.received);
    socket_.read_on();
    step(heartbeat);
    tell_lease();
  }
  void take(const auto& order) { step(order); }
  void tell_lease();
  void step(const AgentEvent& event);
  void wake();
  void act(const Spawn& action) { processes_.start(action); }
  void act(const Signal& action) { processes_.signal(action); }
  void act(const KillTree& action) { processes_.kill(action); }
  void act(const CallOff& action) { processes_.call_off(action); }
  void act(const Report& action);
  void act(const EndAgent& action);
  void await_output();
  void say_good_bye();
  void log(std::string_view text) const { log_line(fmt::format("{}: {}", start_.name, text)); }

  executors::AgentStart start_;
  const bool by_hand_;  // joins by itself, not started by elasticrun: the user may end it with ^C
  const SignalMeans signal_means_;
  const std::string directory_;
  asio::io_context io_{1};
  std::size_t descriptors_ = machine::raise_descriptor_limit();  // limit, or the need logged last
  asio::signal_set signals_{io_, SIGTERM, SIGCHLD, SIGUSR1};
  Notice notice_{io_};
  int ended_by_ = 0;  // signal that ended us; 0: none
  asio::posix::stream_descriptor watchdog_;
  LauncherChannel launcher_{io_};
  asio::steady_timer timer_{io_};
  Time armed_ = never;
  asio::steady_timer output_patience_{io_};
  link::ControllerLink controller_{io_, handlers_of_link()};
  workers::WorkerSocket socket_{io_, directory_, start_, handlers_of_socket()};
  WorkerProcesses processes_{io_, directory_, start_, socket_, handlers_of_processes()};
  std::optional<AgentCore> core_;  // empty until the controller is reached
  const std::vector<machine::Gpu> gpus_ = machine::own_gpus();  // by slot, as found at the start
  std::optional<workers::GpuWatch> gpu_watch_;  // empty until the controller is reached
  EndAgent end_{.exit_code = 1, .reason = {}};
  bool ending_ = false;
  bool held_ = false;  // output waits: the reader of all output is slow
};

Agent::Agent(const executors::AgentStart& start, const Guarded& guarded, bool by_hand)
    : start_(start),
      by_hand_(by_hand),
      signal_means_(meaning_of_signals(by_hand)),
      directory_(guarded.directory),
      watchdog_(io_, guarded.watchdog_socket) {
  if (asks_to_end(SIGINT, signal_means_)) signals_.add(SIGINT);
}

EndAgent Agent::run() {
  watch_signals();
  watchdog_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const ErrorCode& error) {
    if (!error) step(WatchdogLost{});
  });
  const auto failed = [this](const std::string& why) { return log(why), EndAgent{1, why}; };
  if (const auto listening = socket_.ensure(); !listening) return failed(listening.error().text);
  auto for_others = machine::addresses_for_others(machine::own_addresses(), start_.network);
  if (!for_others) return failed("--network: " + for_others.error().text);
  controller_.begin(start_, std::move(*for_others), gpus_);
  io_.run();
  if (by_hand_ && ended_by_ != 0) end_.exit_code = 128 + ended_by_;
  return end_;
}

void Agent::watch_signals() {
  signals_.async_wait([this](const ErrorCode& error, int signal) {
    if (error) return;
    if (signal == SIGCHLD) processes_.end_strays(notice_.pid());
    if (asks_to_end(signal, signal_means_)) {
      ended_by_ = signal;
      step(Terminated{signal});
    }
    watch_signals();
  });
}

// ---------------------------------------------------------------- the controller

link::ControllerLink::Handlers Agent::handlers_of_link() {
  return {.reached = [this](const Result<link::Dialled>& reached) { connected(reached); },
          .frame = [this](WorkerId worker, std::string_view payload) { frame(worker, payload); },
          .away = [this] { step(ConnectionLost{}); },
          .stands_still = [this] { step(ControllerStandsStill{}); },
          .back =
              [this] {
                processes_.ask_again();
                step(Reconnected{});
                processes_.resume_output();
              },
          .controller_gone = [this](const std::string& why) { go_on_alone(ControllerLost{why}); },
          .given_up = [this](const std::string& why) { go_on_alone(GivenUp{why}); },
          .bulk_drained = [this] { processes_.resume_output(); }};
}

void Agent::connected(const Result<link::Dialled>& reached) {
  if (!reached) {
    log(reached.error().text);
    return io_.stop();
  }
  if (start_.host == no_host) learn(start_, reached->greeted.welcome);
  controller_.learned(start_);
  if (!reached->through_ssh) {
    launcher_.watch([this] {
      if (!ending_) log("the channel of the launcher has closed; going on without it");
    });
    link::tell_watchdog(watchdog_.native_handle(), start_, reached->controller);
  }
  processes_.use_address(reached->address);
  core_.emplace(limits_of(start_, signal_means_, reached->through_ssh), boot_now());
  gpu_watch_.emplace(io_, gpus_, [this](const wire::agent::GpuLost& lost) { act(Report{lost}); });
  gpu_watch_->look();
  notice_.watch(start_.notice, [this](const std::string& reason) {
    act(Report{wire::agent::HostLeaves{reason}});
  });
  tell_lease();  // workers may come, and step, before the first heartbeat comes back
  wake();
}

// From here on output is discarded; no worker may block on it.
void Agent::go_on_alone(const AgentEvent& why) {
  controller_.end();
  step(why);
  processes_.resume_output();
}

void Agent::frame(WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) return socket_.send(worker, payload);
  const Result<wire::agent::ToAgent> order = wire::decode<wire::agent::ToAgent>(payload);
  if (!order) return log("an order was not understood: " + order.error().text);
  std::visit([this](const auto& o) { take(o); }, *order);
}

// ---------------------------------------------------------------- the workers

workers::WorkerSocket::Handlers Agent::handlers_of_socket() {
  return {.shim_of = [this](WorkerId worker) { return processes_.shim_of(worker); },
          .on_message = [this](WorkerId worker,
                               std::string_view message) { controller_.send(worker, message); },
          .log = [this](const std::string& text) { log(text); },
          .untaken = [this](WorkerId worker) { return controller_.untaken(worker); }};
}

void Agent::tell_lease() {
  if (const Time ends = core_->lease_ends(); ends != never)
    socket_.tell_all(wire::encode(wire::ToWorker(wire::Lease{ends.time_since_epoch().count()})));
}

WorkerProcesses::Handlers Agent::handlers_of_processes() {
  using namespace wire::agent;
  return {.on_event = [this](const AgentEvent& event) { step(event); },
          .before_end = [this] { gpu_watch_->look(); },  // a lost GPU may be why
          .report = [this](const FromAgent& message) { act(Report{message}); },
          .on_output =
              [this](Output output) {
                controller_.send_bulk(wire::encode(FromAgent(std::move(output))));
                if (ending_) await_output();
              },
          .output_full = [this] { return held_ || controller_.bulk_full(); },
          .on_done =
              [this] {
                if (ending_ && processes_.empty()) say_good_bye();
              }};
}

// ---------------------------------------------------------------- decisions and what follows

void Agent::step(const AgentEvent& event) {
  if (!core_) return io_.stop();  // still dialling: no worker has been started yet
  for (const AgentAction& action : core_->step(event, boot_now()))
    std::visit([this](const auto& a) { act(a); }, action);
  wake();
  if (const auto needed = machine::descriptors_for_workers(processes_.size());
      needed > descriptors_)
    log(machine::too_few_descriptors("its workers", std::exchange(descriptors_, needed), needed));
}

void Agent::wake() {
  const Time at = core_->wake_at();
  if (std::exchange(armed_, at) == at) return;
  timer_.cancel();
  if (at == never) return;
  timer_.expires_after(at - boot_now());
  timer_.async_wait([this](const ErrorCode& error) {
    if (error) return;
    armed_ = never;
    step(Tick{});
  });
}

void Agent::act(const Report& action) {
  if (const auto* heartbeat = std::get_if<wire::agent::Heartbeat>(&action.message))
    return controller_.send_heartbeat(*heartbeat);
  controller_.send(WorkerId{}, wire::encode(action.message));
}

// Output that is still in pipes and queues is handed over first, as long as it moves: a controller
// that takes nothing for a whole lease has given us up.
void Agent::act(const EndAgent& action) {
  end_ = action;
  ending_ = true;
  if (end_.exit_code != 0) log(end_.reason);
  await_output();
  if (processes_.empty()) say_good_bye();
}

void Agent::await_output() {
  output_patience_.expires_after(std::chrono::milliseconds(start_.lease_ms));
  output_patience_.async_wait([this](const ErrorCode& error) {
    if (!error) io_.stop();
  });
}

// Sent after all output: it is our last message.
void Agent::say_good_bye() {
  output_patience_.cancel();
  controller_.send_bulk(wire::encode(wire::agent::FromAgent(wire::agent::Goodbye{end_.reason})));
  controller_.close(std::chrono::milliseconds(start_.lease_ms), [this] { io_.stop(); });
}

}  // namespace

int run_agent(const executors::AgentStart& start, const Guarded& guarded, bool by_hand) {
  const OrphanedJob job(guarded.watchdog_socket);
  const EndAgent end = Agent(start, guarded, by_hand).run();
  workers::end_descendants(std::chrono::seconds(5));
  workers::remove_directory(guarded.directory);  // settle() may take long
  if (end.in_silence && !by_hand) job.settle();
  return end.exit_code;
}

}  // namespace elasticrun::launcher::agent
