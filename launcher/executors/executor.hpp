// How an agent gets onto a host: on this machine, by ssh, as a step of Slurm. One interface, so
// that the job neither knows nor cares.
//
// An executor only starts an agent, tells it where to dial and says when it has ended; everything
// after that goes over the control connection. It decides nothing.
#pragma once

#include <functional>
#include <string>

#include "base/ids.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::executors {

struct ExecutorHandlers {
  // The agent of that host has ended, or could not be started; `reason` is for a person. Once per
  // start, never inside a call of start.
  std::function<void(HostId, std::string reason)> on_exit;
  // A line that the agent wrote to its standard error, without its newline. When empty the line
  // goes to our standard error behind the host's name.
  std::function<void(HostId, std::string line)> on_line = {};
  // What is worth knowing of how that host is reached, and no trouble. When empty: as on_line.
  std::function<void(HostId, std::string line)> on_note = {};
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void start(const AgentStart& start) = 0;
  // The last resort for an agent that does not end: everything of it at once. on_exit follows.
  virtual void kill(HostId host) = 0;
};

}  // namespace elasticrun::launcher::executors
