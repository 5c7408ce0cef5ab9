// See worker_processes.hpp.
#include "launcher/agent/worker_processes.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <set>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/agent/workers/error_file.hpp"
#include "launcher/agent/workers/processes.hpp"
#include "launcher/agent/workers/program.hpp"
#include "launcher/machine/environment.hpp"
#include "launcher/machine/network.hpp"

namespace elasticrun::launcher::agent {

namespace asio = boost::asio;

WorkerProcesses::WorkerProcesses(asio::io_context& io, std::string directory,
                                 const executors::AgentStart& start, workers::WorkerSocket& socket,
                                 Handlers handlers)
    : io_(io),
      directory_(std::move(directory)),
      start_(start),
      socket_(socket),
      handlers_(std::move(handlers)) {}

// ---------------------------------------------------------------- starts

void WorkerProcesses::start(const Spawn& spawn_order) {
  const wire::agent::StartWorker& order = spawn_order.order;
  if (const auto there = socket_.ensure(); !there)
    return not_started(order.worker, exit_code::nothing_started, there.error().text);
  if (order.bundle.empty() || workers::program_is_here(order)) return spawn(order, {});
  bundles_.start(order);
}

bundle::BundleReceiver::Handlers WorkerProcesses::handlers_of_bundles() {
  return {.ask = [this](const wire::agent::BundleWanted& wanted) { handlers_.report(wanted); },
          .start = [this](const wire::agent::StartWorker& order,
                          const std::string& program) { spawn(order, program); },
          .failed =
              [this](WorkerId worker, std::int32_t code, const std::string& reason) {
                not_started(worker, code, "copy of the program: " + reason);
              }};
}

// Reported only after the step that has asked for the start.
void WorkerProcesses::not_started(WorkerId worker, std::int32_t code, const std::string& reason) {
  asio::post(io_, [this, worker, code, reason] {
    handlers_.on_event(ProcessFailed{worker, code, fmt::format("{}: {}", start_.name, reason)});
  });
}

void WorkerProcesses::spawn(wire::agent::StartWorker order, const std::string& program) {
  const WorkerId worker = order.worker;
  head_start_.begins(order);
  order.env = machine::with_account(std::move(order.env), machine::own_environment());
  order.env = machine::with_host(
      std::move(order.env),
      {socket_.path(), worker, address_, machine::interface_of(machine::own_addresses(), address_),
       workers::error_file(directory_, worker), workers::progress_descriptor});
  auto started = workers::WorkerProcess::start(io_, order, start_.name, program,
                                               net::lifeline_path(socket_.path(), worker),
                                               handlers_of(worker));
  if (!started) return not_started(worker, exit_code::nothing_started, started.error().text);
  workers_[worker] = std::move(*started);
}

workers::WorkerProcess::Handlers WorkerProcesses::handlers_of(WorkerId worker) {
  const std::string error_file = workers::error_file(directory_, worker);
  return {
      .on_started =
          [this, worker](std::int32_t pid) {
            handlers_.on_event(ProcessStarted{worker, pid});
          },
      .on_failed =
          [this, worker](std::int32_t code, std::string reason) {
            handlers_.on_event(ProcessFailed{worker, code, std::move(reason)});
          },
      .on_dies =
          [this, worker, error_file](const workers::ProcessEnd& end) {
            handlers_.before_end();
            handlers_.on_event(
                ProcessDies{worker, end.code, end.signal, workers::error_in(error_file)});
          },
      .on_exited =
          [this, worker, error_file](std::int32_t code, std::int32_t signal) {
            handlers_.before_end();
            handlers_.on_event(ProcessExited{worker, code, signal, workers::take_error(error_file),
                                             net::free_port(address_)});
          },
      .output_full = handlers_.output_full,
      .on_output =
          [this, worker](std::int32_t stream, std::string lines) {
            handlers_.on_output({worker, stream, {std::move(lines)}});
          },
      .on_progress = [this](const wire::agent::Progress& made) { handlers_.report(made); },
      .on_done =
          [this, worker] {
            asio::post(io_, [this, worker] {
              workers_.erase(worker);
              handlers_.on_done();
            });
          }};
}

// ---------------------------------------------------------------- ends

void WorkerProcesses::signal(const Signal& action) {
  if (auto* const worker = find(action.worker)) worker->signal(action.signal);
}

void WorkerProcesses::kill(const KillTree& action) {
  if (auto* const worker = find(action.worker)) worker->kill();
}

void WorkerProcesses::call_off(const CallOff& action) {
  if (auto* const worker = find(action.worker)) return worker->call_off();
  if (!bundles_.call_off(action.worker)) return;
  asio::post(io_, [this, worker = action.worker] {
    handlers_.on_event(ProcessExited{worker, 0, SIGTERM});
  });
}

void WorkerProcesses::end_strays(pid_t hook) const {
  std::set<pid_t> shims;
  for (const auto& [id, worker] : workers_) shims.insert(worker->shim());
  workers::end_strays(shims, hook);
}

// ---------------------------------------------------------------- what runs

void WorkerProcesses::resume_output() {
  for (const auto& [id, worker] : workers_) worker->resume_output();
}

pid_t WorkerProcesses::shim_of(WorkerId worker) const {
  const auto* const there = find(worker);
  return there ? there->shim() : -1;
}

workers::WorkerProcess* WorkerProcesses::find(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : found->second.get();
}

}  // namespace elasticrun::launcher::agent
