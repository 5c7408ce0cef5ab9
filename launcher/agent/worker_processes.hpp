// The worker processes of this host (a driver): starts them as AgentCore orders, from a bundle if
// they need one, signals and kills them, and reports their events and their output.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/ids.hpp"
#include "launcher/agent/agent_core.hpp"
#include "launcher/agent/workers/head_start.hpp"
#include "launcher/agent/workers/worker_process.hpp"
#include "launcher/agent/workers/worker_socket.hpp"
#include "launcher/bundle/bundle_receiver.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::agent {

class WorkerProcesses {
 public:
  // No handler is called inside start, except `report`.
  struct Handlers {
    std::function<void(const AgentEvent&)> on_event;
    std::function<void()> before_end;  // a worker dies or has exited; its event follows
    std::function<void(const wire::agent::FromAgent&)> report;
    std::function<void(wire::agent::Output)> on_output;
    std::function<bool()> output_full;  // true: workers wait until resume_output()
    std::function<void()> on_done;      // a worker has ended, and so has its output
  };

  // `directory` is the agent's own. `start` and `socket` outlive this.
  WorkerProcesses(boost::asio::io_context& io, std::string directory,
                  const executors::AgentStart& start, workers::WorkerSocket& socket,
                  Handlers handlers);

  // `address`: this host's in the data plane. Call it before the first start.
  void use_address(std::string address) { address_ = std::move(address); }

  void start(const Spawn& spawn);
  void signal(const Signal& action);
  void kill(const KillTree& action);
  void call_off(const CallOff& action);
  void resume_output();

  void take(const wire::agent::BundlePart& part) { bundles_.take(part); }
  // The connection is a new one: asks again for the parts that were under way.
  void ask_again() { bundles_.ask_again(); }

  // The workers whose output has not ended.
  std::size_t size() const { return workers_.size(); }
  bool empty() const { return workers_.empty(); }
  // -1: no such worker runs here.
  pid_t shim_of(WorkerId worker) const;
  // Reaps and kills the children that are no worker (processes.hpp), except `hook`.
  void end_strays(pid_t hook) const;

 private:
  bundle::BundleReceiver::Handlers handlers_of_bundles();
  workers::WorkerProcess::Handlers handlers_of(WorkerId worker);
  void spawn(wire::agent::StartWorker order, const std::string& program);
  void not_started(WorkerId worker, std::int32_t code, const std::string& reason);
  workers::WorkerProcess* find(WorkerId worker) const;

  boost::asio::io_context& io_;
  const std::string directory_;
  const executors::AgentStart& start_;
  workers::WorkerSocket& socket_;
  const Handlers handlers_;
  std::string address_;
  std::map<WorkerId, std::unique_ptr<workers::WorkerProcess>> workers_;  // until their output ends
  bundle::BundleReceiver bundles_{io_, directory_, handlers_of_bundles()};
  workers::HeadStart head_start_{io_};
};

}  // namespace elasticrun::launcher::agent
