// See orphan.hpp.
#include "launcher/srun/orphan.hpp"

namespace elasticrun::launcher::srun {
namespace {

constexpr int asking_nodes = 3;

}  // namespace

Orphan orphan(const BatchJob& job, int restarts) {
  if (!job.script || !job.runs || job.restarts != restarts) return Orphan::leave;
  if (!job.lost_its_script) return Orphan::wait;
  return job.may_be_requeued ? Orphan::requeue : Orphan::cancel;
}

bool asks_for_orphan(int node) { return node >= 0 && node < asking_nodes; }

}  // namespace elasticrun::launcher::srun
