// Gives nodes that no worker needs back to Slurm (--slurm-shrink): when their agents have gone, and
// all in one request, because Slurm without accounting grants a job no more than one (a driver).
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

namespace elasticrun::job::driver {

class NodeReturn {
 public:
  using Answered = std::function<void(GiveBack::Answer)>;
  NodeReturn(boost::asio::io_context& io, const JobSpec& spec, hosts::Roster& roster,
             Agents& agents, Answered answered)
      : io_(io), spec_(spec), roster_(roster), agents_(agents), answered_(std::move(answered)) {}

  // The roster does without these hosts from now on, or until Slurm does not want them.
  void give_back(const GiveBack& order);
  // Its agent has gone, or has said goodbye: then this makes sure of its end.
  void agent_gone(HostId host);
  // No answer comes from now on.
  void stop() { question_.reset(); }

 private:
  struct Request {
    GiveBack order;     // with the agents that have not gone yet
    std::string nodes;  // of our job of Slurm, one a line
  };
  void ask();

  boost::asio::io_context& io_;
  const JobSpec& spec_;
  hosts::Roster& roster_;
  Agents& agents_;
  const Answered answered_;
  std::vector<Request> requests_;  // the first one may be under way
  bool under_way_ = false;
  std::optional<launcher::executors::HookProcess> question_;
};

}  // namespace elasticrun::job::driver
