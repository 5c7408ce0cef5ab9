// Agents on this machine, as children of this process.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "launcher/executors/executor.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::executors {

// The path of elasticrun-agent, which lies beside the running program.
Result<std::string> find_agent();

class LocalExecutor : public Executor {
 public:
  // `agent`: path of elasticrun-agent. `wrap`: the command inside which it is started (wrap.hpp).
  // This object must be destroyed before `io`.
  LocalExecutor(boost::asio::io_context& io, std::string agent, ExecutorHandlers handlers,
                std::string wrap = {});
  // Agents that still run see the end of their standard input and of their control channel.
  ~LocalExecutor() override;

  void start(const AgentStart& start) override;
  void kill(HostId host) override;

 private:
  struct Child;
  void read_errors(const std::shared_ptr<Child>& child);
  void wait(const std::shared_ptr<Child>& child);
  void line(const Child& child, std::string_view text) const;
  void end_at_once(Child& child);
  void finish_if_done(const std::shared_ptr<Child>& child);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elasticrun::launcher::executors
