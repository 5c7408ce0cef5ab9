// Starts and kills the agents of a job (a driver): chooses the executor for each host and the
// addresses that its agent dials, and never runs two agents on one host at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/core/hosts/roster.hpp"
#include "job/spec.hpp"
#include "launcher/executors/executor.hpp"
#include "launcher/machine/machine.hpp"
#include "rendezvous/server/host_keys.hpp"
#include "wire/greeting.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::job::driver {

// What a host that joins by itself is told of these parameters.
wire::Welcome welcome_of(const launcher::executors::AgentStart& told);

class Agents {
 public:
  struct Handlers {
    // The agent of that host has ended, or could not be started. Never called from inside a
    // function of this class.
    std::function<void(HostId, const std::string& reason)> gone;
    std::function<void(HostId, const std::string& line)> line;  // a line of its standard error
    std::function<void(HostId, const std::string& line)> note;  // how it is reached; not an error
  };
  Agents(boost::asio::io_context& io, const JobSpec& spec, hosts::Roster& roster,
         const launcher::machine::Machine& machine, const rendezvous::server::HostKeys& keys,
         Handlers handlers);
  ~Agents();

  // The start parameters that are the same for all agents of this job, without the port.
  launcher::executors::AgentStart start_of(const std::string& job) const;
  // Makes the executors. An error when --bind or --network matches no address of this machine, or
  // the agent's program is missing. The job's id seeds what is random.
  Result<void> prepare(const std::string& job);
  // The address at which the rendezvous must listen so that the agents of these hosts reach it.
  const std::string& listen_address() const { return listen_address_; }
  const std::vector<std::string>& addresses_for_others() const { return for_others_; }
  // Sets the common start parameters: those of start_of(), with the port.
  void told(launcher::executors::AgentStart common) { common_ = std::move(common); }

  // The host of this name whose agent srun has started, and is not up.
  std::optional<HostId> awaited(const std::string& name) const;
  void up(HostId host) { awaited_.erase(host); }

  // Whether that host is the machine of the controller.
  bool is_here(HostId host) const;

  // Adds to each host whether it must stay, as it is that machine.
  HostsMet marked(HostsMet met) const;
  // Whether an agent that was started there has not ended.
  bool runs(HostId host) const { return running_.contains(host); }

  // Starts an agent there. If the last one still runs, kills it and starts the next one after it
  // has ended.
  void start(HostId host);
  void kill(HostId host);
  void kill_all();
  // From no_more() on, no agent that waits for its predecessor is started. none(): no agent runs.
  void no_more() { waiting_.clear(); }
  bool none() const { return running_.empty(); }

 private:
  Result<void> prepare_ssh(const std::string& agent, const std::string& job);
  Result<void> prepare_srun(const std::string& agent, const std::string& job);
  int component_of(HostId host) const;  // of a heterogeneous job of Slurm
  launcher::executors::Executor& executor_of(HostId host);
  launcher::executors::ExecutorHandlers handlers_for_executor();
  void start_now(HostId host);
  void ended(HostId host, const std::string& reason);

  boost::asio::io_context& io_;
  const JobSpec& spec_;
  hosts::Roster& roster_;
  const launcher::machine::Machine& machine_;
  const rendezvous::server::HostKeys& keys_;
  Handlers handlers_;
  launcher::executors::AgentStart common_;
  std::string listen_address_;
  std::vector<std::string> for_others_;  // our addresses that other hosts can dial
  std::unique_ptr<launcher::executors::Executor> local_;
  std::unique_ptr<launcher::executors::Executor> ssh_;
  std::set<HostId> running_;
  std::unique_ptr<launcher::executors::Executor> srun_;
  std::set<HostId> awaited_;
  std::set<HostId> waiting_;  // hosts whose next agent starts when the last one has ended
};

}  // namespace elasticrun::job::driver
