// The nodes of our job of Slurm (a driver). A drained one is let go, and used again once an
// administrator has resumed it. Nodes that no worker needs are given back (--slurm-shrink): when
// their agents have gone, and all in one request, because Slurm without accounting grants a job no
// more than one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "job/core/hosts/roster.hpp"
#include "job/core/terms/events.hpp"
#include "job/driver/agents.hpp"
#include "job/spec.hpp"
#include "launcher/executors/hook_process.hpp"
#include "launcher/srun/node_watch.hpp"

namespace elasticrun::job::driver {

class SlurmNodes {
 public:
  struct Handlers {
    std::function<void(const JobEvent&)> event;
    std::function<void(const std::string& why)> changed;  // the slots
  };
  SlurmNodes(boost::asio::io_context& io, const JobSpec& spec, hosts::Roster& roster,
             Agents& agents, Handlers handlers)
      : io_(io), spec_(spec), roster_(roster), agents_(agents), handlers_(std::move(handlers)) {}

  // Asks from now on which nodes are drained.
  void start();
  // The roster does without these hosts from now on, unless Slurm refuses them.
  void give_back(const GiveBack& order);
  // Its agent has gone, or has sent Goodbye: then this makes sure of its end.
  void agent_gone(HostId host);
  // No handler is called from now on.
  void stop();

 private:
  struct Request {
    GiveBack order;     // with the agents that have not gone yet
    std::string nodes;  // of our job of Slurm, one a line
  };
  void ask();
  void goes(const std::string& node, const std::string& why);
  void stays(const std::string& node, const std::string& why);

  boost::asio::io_context& io_;
  const JobSpec& spec_;
  hosts::Roster& roster_;
  Agents& agents_;
  const Handlers handlers_;
  std::vector<Request> requests_;  // the first one may be under way
  bool under_way_ = false;
  std::optional<launcher::executors::HookProcess> question_;
  std::optional<launcher::srun::NodeWatch> watch_;
};

}  // namespace elasticrun::job::driver
