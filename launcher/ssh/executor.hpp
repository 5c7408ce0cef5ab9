// Agents on other hosts, by ssh: nothing need be installed there but sshd.
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
  std::string wrap;        // what it is started inside of (wrap.hpp); empty: nothing
  SshOverrides overrides;  // of the command line; what the host file says of a host beats them
  RetryLimits retry;
  StageLimits stages;
  Duration end_time = std::chrono::seconds(3);  // for an agent that is told to end
  std::uint64_t seed = 0;                       // random, and not the same in two jobs
};

// Reports besides on_exit: when the ssh connection to an agent that runs is lost, that is a line
// (on_line), and not its end: the control connection is what counts. on_exit then comes when kill
// is called.
class SshExecutor : public executors::Executor {
 public:
  // `host_of` says what a started host's entry in the host file is. io must be run by one thread,
  // and outlive this object.
  static Result<std::unique_ptr<SshExecutor>> make(boost::asio::io_context& io, SshOptions options,
                                                   std::function<hosts::Host(HostId)> host_of,
                                                   executors::ExecutorHandlers handlers);
  // Closes all connections. Agents that still run see that, and the end of their control
  // connections.
  ~SshExecutor() override;

  void start(const executors::AgentStart& start) override;
  // An agent that runs is told to end at once; a host that is on its way is given up. A second
  // call, or one that is not obeyed in time, closes the connection.
  void kill(HostId host) override;

 private:
  struct State;
  explicit SshExecutor(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
