// Starts agents on other hosts by ssh: nothing need be installed there but sshd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "launcher/executors/executor.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/ssh/config.hpp"
#include "launcher/ssh/retry.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::ssh {

struct SshOptions {
  std::string agent;       // path of elasticrun-agent, to be copied to hosts that lack it
  std::string wrap;        // command that it is started inside of (wrap.hpp); empty: none
  SshOverrides overrides;  // from the command line; settings in the host file beat them
  RetryLimits retry;
  StageLimits stages;
  Duration end_time = std::chrono::seconds(3);  // how long an agent that was told to end may take
  std::uint64_t seed = 0;                       // random, and different for each job
};

// Besides on_exit: the loss of the ssh connection to a running agent is reported as a line
// (on_line) and is not the agent's end, because the control connection is what counts. on_exit then
// comes when kill is called.
class SshExecutor : public executors::Executor {
 public:
  // `host_of` returns the host file's entry for a started host. io must be run by one thread, and
  // outlive this object.
  static Result<std::unique_ptr<SshExecutor>> make(boost::asio::io_context& io, SshOptions options,
                                                   std::function<hosts::Host(HostId)> host_of,
                                                   executors::ExecutorHandlers handlers);
  // Closes all connections. Agents that still run notice that, and the end of their control
  // connections.
  ~SshExecutor() override;

  void start(const executors::AgentStart& start) override;
  // A running agent is told to end at once; a host that is still being started is given up. A
  // second call closes the connection; so does an agent that does not obey in time.
  void kill(HostId host) override;

 private:
  struct State;
  explicit SshExecutor(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
