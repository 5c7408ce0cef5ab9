// See limits.hpp.
#include "launcher/agent/limits.hpp"

#include <csignal>
#include <cstdlib>

namespace elasticrun::launcher::agent {

SignalMeans meaning_of_signals(bool joins) {
  if (joins) return SignalMeans::host_ends;
  return ::getenv("SLURM_STEP_ID") ? SignalMeans::job_stops : SignalMeans::either;
}

AgentLimits limits_of(const executors::AgentStart& start, SignalMeans means) {
  using ms = std::chrono::milliseconds;
  return {start.term, ms(start.lease_ms), ms(start.heartbeat_ms), ms(start.orphan_grace_ms), means};
}

bool asks_to_end(int signal, SignalMeans means) {
  return signal == SIGTERM || (signal == SIGINT && means != SignalMeans::either) ||
         (signal == SIGUSR1 && means == SignalMeans::job_stops);
}

}  // namespace elasticrun::launcher::agent
