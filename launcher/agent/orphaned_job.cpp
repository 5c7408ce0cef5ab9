// See orphaned_job.hpp.
#include "launcher/agent/orphaned_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>
#include <string>

#include "base/boot_clock.hpp"
#include "base/numbers.hpp"
#include "launcher/agent/log.hpp"
#include "launcher/srun/orphan.hpp"

namespace elasticrun::launcher::agent {
namespace {

using srun::Orphan;

// Slurm misses a node after five minutes, unless SlurmdTimeout is longer.
constexpr Duration patience = std::chrono::minutes(15);
constexpr int interval_ms = 15'000;

std::string variable(const char* name) {
  const char* const value = ::getenv(name);
  return value ? value : "";
}

int number(const char* name) { return static_cast<int>(whole_number(variable(name)).value_or(0)); }

// The plain number of a task of an array may mean the whole array.
std::string job_id() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  return array.empty() || task.empty() ? variable("SLURM_JOB_ID") : array + "_" + task;
}

void log_end(const std::string& id, const std::string& done, const Result<void>& result) {
  log_line(fmt::format("job {} has lost its script: {}", id,
                       result ? done : fmt::format("not {}: {}", done, result.error().text)));
}

}  // namespace

OrphanedJob::OrphanedJob(int watchdog) : watchdog_(::fcntl(watchdog, F_DUPFD_CLOEXEC, 0)) {}

void OrphanedJob::settle() const {
  if (variable("SLURM_STEP_ID").empty() || !srun::asks_for_orphan(number("SLURM_NODEID"))) return;
  const int restarts = number("SLURM_RESTART_COUNT");
  const std::string id = job_id();
  for (const Time end = boot_now() + patience; boot_now() < end;) {
    const auto job = srun::find_batch_job(id);
    switch (job ? srun::orphan(*job, restarts) : Orphan::wait) {
      case Orphan::leave:
        return;
      // If another agent of the job was first, Slurm refuses these.
      case Orphan::requeue:
        return log_end(id, "requeued", srun::requeue(id));
      case Orphan::cancel:
        return log_end(id, "cancelled", srun::cancel(id));
      case Orphan::wait:
        break;
    }
    pollfd waiting{watchdog_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, interval_ms) > 0) return;
  }
}

}  // namespace elasticrun::launcher::agent
