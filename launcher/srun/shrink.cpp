// See shrink.hpp.
#include "launcher/srun/shrink.hpp"

#include <fmt/format.h>

namespace elasticrun::launcher::srun {

// Slurm wants the nodes that are kept. Asked of Slurm itself, as it may have taken some meanwhile.
// And scontrol writes two scripts for a batch script to read into the folder that it runs in.
std::string shrink_command(const std::string& job) {
  return fmt::format(
      "go=$(cat); [ -n \"$go\" ] || exit 0; "
      "kept=$(scontrol show hostnames \"$(squeue --noheader --jobs={0} --format=%N)\" | "
      "grep -vxF \"$go\" | paste -sd,); "
      "[ -n \"$kept\" ] || {{ echo 'squeue does not say which nodes are left' >&2; exit 1; }}; "
      "own=$(mktemp -d) && cd \"$own\" || exit; "
      "scontrol update JobId={0} NodeList=\"$kept\"; done=$?; cd / && rm -r \"$own\"; exit $done",
      job);
}

}  // namespace elasticrun::launcher::srun
