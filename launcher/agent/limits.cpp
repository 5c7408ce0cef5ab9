// See limits.hpp.
#include "launcher/agent/limits.hpp"

#include <csignal>
#include <cstdlib>

namespace elasticrun::launcher::agent {

SignalMeans meaning_of_signals(bool by_hand) {
  if (by_hand) return SignalMeans::host_ends;
  return ::getenv("SLURM_STEP_ID") ? SignalMeans::job_stops : SignalMeans::either;
}

AgentLimits limits_of(const executors::AgentStart& start, SignalMeans means, bool through_ssh) {
  using ms = std::chrono::milliseconds;
  return {.term = start.term,
          .lease = ms(start.lease_ms),
          .heartbeat = ms(start.heartbeat_ms),
          .orphan_grace = ms(start.orphan_grace_ms),
          .standstill = through_ssh ? Duration::zero() : ms(start.standstill_ms),
          .signal_means = means};
}

bool asks_to_end(int signal, SignalMeans means) {
  return signal == SIGTERM || (signal == SIGINT && means != SignalMeans::either) ||
         (signal == SIGUSR1 && means == SignalMeans::job_stops);
}

}  // namespace elasticrun::launcher::agent
