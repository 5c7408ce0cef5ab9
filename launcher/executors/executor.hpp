// How an agent is started on a host: on this machine, by ssh, as a Slurm step. One interface, so
// that the job does not depend on which.
//
// An executor only starts an agent, tells it where to dial and reports when it has ended. All the
// rest goes over the control channel. An executor decides nothing.
#pragma once

#include <functional>
#include <string>

#include "base/ids.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::executors {

struct ExecutorHandlers {
  // Called when the agent of that host has ended, or could not be started; `reason` is for the
  // user. Called once per start, never from inside start().
  std::function<void(HostId, std::string reason)> on_exit;
  // Called with each line, without its newline, that the agent wrote to its standard error. When no
  // handler is set, the line goes to our standard error, prefixed with the host's name.
  std::function<void(HostId, std::string line)> on_line = {};
  // Called with information about how that host is reached that is not an error. When no handler is
  // set, the text goes where a line for on_line goes.
  std::function<void(HostId, std::string line)> on_note = {};
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void start(const AgentStart& start) = 0;
  // The last resort for an agent that does not end: ends it and all it has started, at once.
  // on_exit follows.
  virtual void kill(HostId host) = 0;
};

}  // namespace elasticrun::launcher::executors
