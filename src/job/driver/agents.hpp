// The agents of a job (a driver): which executor gets one onto which host, where it is to dial, and
// one at a time for each host.
#pragma once

#include <functional>
#include <memory>
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

namespace boost::asio {
class io_context;
}

namespace elasticrun::job::driver {

class Agents {
 public:
  struct Handlers {
    // The agent of that host has ended, or could not be started. Never inside a call of ours.
    std::function<void(HostId, const std::string& reason)> gone;
    std::function<void(HostId, const std::string& line)> line;  // of its standard error
    std::function<void(HostId, const std::string& line)> note;  // how it is reached; no trouble
  };
  Agents(boost::asio::io_context& io, const JobSpec& spec, hosts::Roster& roster,
         const launcher::machine::Machine& machine, const rendezvous::server::HostKeys& keys,
         Handlers handlers);
  ~Agents();

  // What all agents of this job are told alike, but for the port.
  launcher::executors::AgentStart start_of(const std::string& job) const;
  // An error when --bind or --network names nothing here, or the agent's program is missing.
  // Chance comes from the job's id.
  Result<void> prepare(const std::string& job);
  // Where the rendezvous must listen so that the agents of these hosts reach it.
  const std::string& listen_address() const { return listen_address_; }
  const std::vector<std::string>& addresses_for_others() const { return for_others_; }
  // What all agents are told alike.
  void told(launcher::executors::AgentStart common) { common_ = std::move(common); }

  bool is_here(HostId host) const;

  // A host whose last agent has not ended yet gets its next one then.
  void start(HostId host);
  void kill(HostId host);
  void kill_all();
  // None more is started; whether one is left.
  void no_more() { waiting_.clear(); }
  bool none() const { return running_.empty(); }

 private:
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
  std::set<HostId> waiting_;  // for theirs to end before the next one starts
};

}  // namespace elasticrun::job::driver
