// The agent proper: connects the decisions of AgentCore to sockets, processes and the clock.
#pragma once

#include "launcher/agent/watchdog.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::agent {

// Dials the controller, obeys it, and returns the exit code when nothing is left to do. If that is
// not what the controller wanted, one line on standard error explains why.
// `by_hand`: a user has started it, or the script of a job of Slurm that joins.
int run_agent(const executors::AgentStart& start, const Guarded& guarded, bool by_hand);

}  // namespace elasticrun::launcher::agent
