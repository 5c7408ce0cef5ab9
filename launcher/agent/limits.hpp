// The limits of an agent on this host, and the meaning of the signals that it gets.
#pragma once

#include "launcher/agent/agent_core.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::agent {

// `by_hand`: a user has started the agent, not elasticrun. Otherwise, inside a step of Slurm
// (SLURM_STEP_ID), a signal to an agent is a signal to the job.
SignalMeans meaning_of_signals(bool by_hand);
// `through_ssh`: the connection does not show whether the controller's machine answers, so workers
// are not kept beyond the lease.
AgentLimits limits_of(const executors::AgentStart& start, SignalMeans means, bool through_ssh);

// Whether the signal is a wish that the host, or the job, ends. Others are for the program.
bool asks_to_end(int signal, SignalMeans means);

}  // namespace elasticrun::launcher::agent
