// See agent.hpp. One thread, one io_context; every event goes through `step`, so that the core sees
// them in one order. Letters between the controller and a worker's library are passed on unread.
#include "launcher/agent/agent.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "launcher/agent/agent_core.hpp"
#include "launcher/agent/gpu_watch.hpp"
#include "launcher/agent/join.hpp"
#include "launcher/agent/parcels.hpp"
#include "launcher/agent/private_directory.hpp"
#include "launcher/agent/processes.hpp"
#include "launcher/agent/program.hpp"
#include "launcher/agent/reach.hpp"
#include "launcher/agent/say.hpp"
#include "launcher/agent/worker_process.hpp"
#include "launcher/agent/worker_socket.hpp"
#include "launcher/descriptors.hpp"
#include "launcher/environment.hpp"
#include "launcher/machine.hpp"
#include "launcher/network.hpp"
#include "net/session.hpp"
#include "wire/codec.hpp"

namespace elasticrun::launcher {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

Time now() { return std::chrono::steady_clock::now(); }

AgentLimits limits_of(const AgentStart& start) {
  using ms = std::chrono::milliseconds;
  return {start.term, ms(start.lease_ms), ms(start.beat_ms), ms(start.orphan_grace_ms)};
}

class Agent {
 public:
  Agent(const AgentStart& start, const Guarded& guarded);
  int run();

 private:
  void watch_signals();
  void watch_guardian();
  void watch_input();
  WorkerSocket::Handlers handlers_of_socket();
  void connected(Result<Reached> reached);
  void resume_output();
  void controller_lost(const std::string& reason);
  void frame(WorkerId worker, std::string_view payload);

  void take(const wire::ParcelPart& part) { parcels_.take(part); }
  void take(const wire::HoldOutput& order) {
    held_ = order.hold;
    resume_output();
  }
  void take(const auto& order) { step(order); }
  void step(const AgentEvent& event);
  void wake();
  void act(const Spawn& action);
  void spawn(wire::StartWorker order, const std::string& program);
  Parcels::Handlers handlers_of_parcels();
  void not_started(WorkerId id, std::int32_t code, const std::string& reason);
  void act(const Signal& action);
  void act(const KillTree& action);
  void act(const CallOff& action);
  void act(const Report& action);
  void act(const EndAgent& action);
  void await_output();
  void say_good_bye();
  void sweep();

  void log(std::string_view text) const { say(fmt::format("{}: {}", start_.name, text)); }

  AgentStart start_;
  const bool joins_;  // by itself: nobody has started us, and a person may end us
  const std::string directory_;
  asio::io_context io_{1};
  std::size_t descriptors_ = raise_descriptor_limit();  // or what was said to be too few
  asio::signal_set signals_{io_, SIGTERM, SIGCHLD};
  int ended_by_ = 0;  // the signal
  asio::posix::stream_descriptor guardian_;
  asio::posix::stream_descriptor input_{io_};
  asio::steady_timer timer_{io_};
  Time armed_ = never;
  asio::steady_timer good_bye_{io_};
  std::unique_ptr<Reach> reach_;
  std::string address_;  // of the data plane here
  std::unique_ptr<net::Session> controller_;
  std::map<WorkerId, std::unique_ptr<WorkerProcess>> workers_;  // until their output has ended
  WorkerSocket socket_{io_, directory_, start_, handlers_of_socket()};
  Parcels parcels_{io_, directory_, handlers_of_parcels()};
  std::optional<AgentCore> core_;             // when we have reached the controller
  const std::vector<Gpu> gpus_ = own_gpus();  // by slot, as they were when we came
  std::optional<GpuWatch> gpu_watch_;         // when we have reached the controller
  int exit_code_ = 1;
  bool ending_ = false;
  bool held_ = false;  // output waits
};

Agent::Agent(const AgentStart& start, const Guarded& guarded)
    : start_(start),
      joins_(start.host == no_host),
      directory_(guarded.directory),
      guardian_(io_, guarded.guardian_socket) {
  if (joins_) signals_.add(SIGINT);
}

int Agent::run() {
  watch_signals();
  watch_guardian();
  if (const Result<void> listening = socket_.ensure(); !listening) {
    log(listening.error().text);
    return 1;
  }
  auto for_others = addresses_for_others(own_addresses(), start_.network);
  if (!for_others) {
    log("--network: " + for_others.error().text);
    return 1;
  }
  reach_ = std::make_unique<Reach>(io_, start_, std::move(*for_others), gpus_);
  reach_->begin([this](Result<Reached> reached) { connected(std::move(reached)); });
  io_.run();
  return joins_ && ended_by_ != 0 ? 128 + ended_by_ : exit_code_;
}

// ---------------------------------------------------------------- what is watched

void Agent::watch_signals() {
  signals_.async_wait([this](const ErrorCode& error, int signal) {
    if (error) return;
    if (signal == SIGCHLD) sweep();
    if (signal == SIGTERM || signal == SIGINT) {
      ended_by_ = signal;
      step(Terminated{});
    }
    watch_signals();
  });
}

void Agent::watch_guardian() {
  guardian_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const ErrorCode& error) {
    if (!error) step(GuardianLost{});
  });
}

// Standard input has said what it had to say. Its end means that the launcher's channel (ssh, say)
// is gone, which alone is no reason to end: the control connection is what counts.
void Agent::watch_input() {
  ErrorCode error;
  input_.assign(::dup(STDIN_FILENO), error);
  input_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const ErrorCode& failed) {
    if (failed) return;
    std::array<char, 256> ignored;
    if (::read(input_.native_handle(), ignored.data(), ignored.size()) > 0) return watch_input();
    if (controller_ && !ending_) log("the channel of the launcher has closed; going on without it");
    input_.close();
  });
}

void Agent::sweep() {
  std::set<pid_t> keepers;
  for (const auto& [id, worker] : workers_) keepers.insert(worker->keeper());
  end_strays(keepers);
}

// ---------------------------------------------------------------- the controller

void Agent::connected(Result<Reached> reached) {
  if (!reached) {
    log(reached.error().text);
    return io_.stop();
  }
  address_ = std::move(reached->address);
  if (joins_) learn(start_, reached->greeted.welcome);
  if (!reached->through_ssh) watch_input();
  core_.emplace(limits_of(start_), now());
  controller_ = std::move(reached->greeted.session);
  controller_->start(
      {.on_frame = [this](WorkerId worker, std::string_view payload) { frame(worker, payload); },
       .on_close = [this](const std::string& reason) { controller_lost(reason); },
       .on_bulk_drained = [this] { resume_output(); }});
  gpu_watch_.emplace(io_, gpus_, [this](const wire::GpuLost& lost) { act(Report{lost}); });
  gpu_watch_->look();
  wake();
}

void Agent::resume_output() {
  for (auto& [id, worker] : workers_) worker->resume_output();
}

void Agent::controller_lost(const std::string& reason) {
  controller_.reset();
  if (ending_) return io_.stop();
  step(ControllerLost{reason});
  resume_output();  // to nobody; none may block
}

void Agent::frame(WorkerId worker, std::string_view payload) {
  if (worker != WorkerId{}) return socket_.send(worker, payload);
  const Result<wire::ToAgent> order = wire::decode<wire::ToAgent>(payload);
  if (!order) return log("an order was not understood: " + order.error().text);
  std::visit([this](const auto& o) { take(o); }, *order);
}

// ---------------------------------------------------------------- the workers' libraries

WorkerSocket::Handlers Agent::handlers_of_socket() {
  return {.keeper_of =
              [this](WorkerId id) {
                const auto worker = workers_.find(id);
                return worker == workers_.end() ? -1 : worker->second->keeper();
              },
          .on_letter =
              [this](WorkerId worker, std::string_view letter) {
                if (controller_) controller_->send(worker, letter);
              },
          .log = [this](const std::string& text) { log(text); }};
}

// ---------------------------------------------------------------- decisions and what follows

void Agent::step(const AgentEvent& event) {
  if (!core_) return io_.stop();  // on the way to the controller: nothing has been started yet
  for (const AgentAction& action : core_->step(event, now()))
    std::visit([this](const auto& a) { act(a); }, action);
  wake();
  const std::size_t needed = descriptors_for_workers(workers_.size());
  if (needed > descriptors_)
    log(too_few_descriptors("its workers", std::exchange(descriptors_, needed), needed));
}

void Agent::wake() {
  const Time at = core_->wake_at();
  if (at == armed_) return;
  armed_ = at;
  timer_.cancel();
  if (at == never) return;
  timer_.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(at));
  timer_.async_wait([this](const ErrorCode& error) {
    if (error) return;
    armed_ = never;
    step(Tick{});
  });
}

void Agent::act(const Spawn& action) {
  if (const auto there = socket_.ensure(); !there)
    return not_started(action.order.worker, 121, there.error().text);
  if (action.order.parcel.empty() || program_is_here(action.order)) return spawn(action.order, {});
  parcels_.start(action.order);
}

Parcels::Handlers Agent::handlers_of_parcels() {
  return {.ask = [this](const wire::ParcelWanted& wanted) { act(Report{wanted}); },
          .start = [this](const wire::StartWorker& order,
                          const std::string& program) { spawn(order, program); },
          .failed =
              [this](WorkerId id, std::int32_t code, const std::string& reason) {
                not_started(id, code, "copy of the program: " + reason);
              }};
}

// Told after the step that has asked for it.
void Agent::not_started(WorkerId id, std::int32_t code, const std::string& reason) {
  asio::post(io_, [this, id, code, reason] {
    step(ProcessFailed{id, code, fmt::format("{}: {}", start_.name, reason)});
  });
}

void Agent::spawn(wire::StartWorker order, const std::string& program) {
  const WorkerId id = order.worker;
  const auto own = own_addresses();
  const auto here = std::ranges::find(own, address_, &OwnAddress::address);
  order.env = with_host(with_account(std::move(order.env), own_environment()),
                        {.socket = socket_.path(),
                         .worker = id,
                         .address = address_,
                         .interface = here == own.end() ? "" : here->interface});
  auto worker = WorkerProcess::start(
      io_, order, start_.name, program,
      {.on_started =
           [this, id](std::int32_t pid) {
             step(ProcessStarted{id, pid});
           },
       .on_failed =
           [this, id](std::int32_t code, std::string reason) {
             step(ProcessFailed{id, code, std::move(reason)});
           },
       .on_exited =
           [this, id](std::int32_t code, std::int32_t signal) {
             gpu_watch_->look();  // its end may be theirs
             step(ProcessExited{id, code, signal});
           },
       .output_full = [this] { return controller_ && (held_ || controller_->bulk_full()); },
       .on_output =
           [this, id](std::int32_t stream, std::string lines) {
             const wire::FromAgent output = wire::Output{id, stream, std::move(lines)};
             if (controller_) controller_->send_bulk(WorkerId{}, wire::encode(output));
             if (ending_) await_output();
           },
       .on_done =
           [this, id] {
             asio::post(io_, [this, id] {
               workers_.erase(id);
               if (ending_ && workers_.empty()) say_good_bye();
             });
           }});
  if (worker)
    workers_[id] = std::move(*worker);
  else
    asio::post(io_, [this, id, text = worker.error().text] { step(ProcessFailed{id, 121, text}); });
}

void Agent::act(const Signal& action) {
  const auto it = workers_.find(action.worker);
  if (it != workers_.end()) it->second->signal(action.signal);
}

void Agent::act(const KillTree& action) {
  const auto it = workers_.find(action.worker);
  if (it != workers_.end()) it->second->kill();
}

void Agent::act(const CallOff& action) {
  if (const auto it = workers_.find(action.worker); it != workers_.end())
    return it->second->call_off();
  if (!parcels_.call_off(action.worker)) return;
  asio::post(io_, [this, id = action.worker] { step(ProcessExited{id, 0, SIGTERM}); });
}

void Agent::act(const Report& action) {
  if (controller_) controller_->send(WorkerId{}, wire::encode(action.message));
}

// Output that still lies in pipes and queues is handed over first, as long as it moves: a
// controller that takes nothing for a whole lease has given us up.
void Agent::act(const EndAgent& action) {
  exit_code_ = action.exit_code;
  ending_ = true;
  if (exit_code_ != 0) log(action.reason);
  if (!controller_) return io_.stop();
  await_output();
  if (workers_.empty()) say_good_bye();
}

void Agent::await_output() {
  good_bye_.expires_after(std::chrono::milliseconds(start_.lease_ms));
  good_bye_.async_wait([this](const ErrorCode& error) {
    if (!error) io_.stop();
  });
}

void Agent::say_good_bye() {
  good_bye_.cancel();
  if (!controller_) return io_.stop();
  controller_->close(std::chrono::milliseconds(start_.lease_ms));
}

}  // namespace

int run_agent(const AgentStart& start, const Guarded& guarded) {
  const int code = Agent(start, guarded).run();
  end_descendants(std::chrono::seconds(5));
  remove_directory(guarded.directory);
  return code;
}

}  // namespace elasticrun::launcher
