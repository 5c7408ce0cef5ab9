// Starts agents on the nodes of a job of Slurm, by srun: no ssh, and Slurm's accounting and control
// groups hold for all that runs.
//
// All starts of one moment become one step (step.hpp). srun copies the same standard input to all
// of its tasks, so an agent of such a step gets a key for all of them there, and its own key when
// it has greeted; a step with one agent gets that one's own key.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launcher/executors/executor.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::srun {

struct SrunOptions {
  std::string agent;          // path of elasticrun-agent, to be copied to the nodes
  std::string hash;           // of that file (bundle/content_hash.hpp)
  std::string wrap;           // command that it is started inside of; empty: none
  std::string step_identity;  // with the key by which agents of one step get their own
  std::string step_key_hex;
  // The component of a heterogeneous job that the host belongs to; -1: the job is none.
  std::function<int(HostId)> component_of;
  std::uint64_t seed = 0;  // random, and different for each job
};

// The end of a single agent of a step is known only when srun tells it, which it does for agents
// that fail. What kill() has ended has ended for on_exit, too.
class SrunExecutor : public executors::Executor {
 public:
  // This object must be destroyed before `io`.
  SrunExecutor(boost::asio::io_context& io, SrunOptions options,
               executors::ExecutorHandlers handlers);
  // Agents that still run see the end of their standard input and of their control channel.
  ~SrunExecutor() override;

  void start(const executors::AgentStart& start) override;
  void kill(HostId host) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::srun
