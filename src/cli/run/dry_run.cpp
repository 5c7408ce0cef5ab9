// See dry_run.hpp.
#include "cli/run/dry_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "autoscaler/batch_plan.hpp"
#include "launcher/hosts/plan.hpp"

namespace elasticrun::cli::run {

std::string describe(const job::JobSpec& spec) {
  launcher::hosts::HostBook book;
  const launcher::hosts::Plan plan =
      launcher::hosts::make_plan(spec.hosts, spec.default_slots, book);
  const bool guessed =
      spec.slots_are_gpus && std::ranges::count(spec.hosts, 0, &launcher::hosts::Host::slots) > 0;
  const int slots = launcher::hosts::slots_within(plan.slots_by_host, spec.limits.max_hosts);
  const int found = spec.limits.max > 0 ? std::min(spec.limits.max, slots) : slots;
  const int most = guessed ? std::max(found, spec.limits.min) : found;
  const int start = spec.start > 0 ? std::min(spec.start, most) : most;
  std::string text =
      fmt::format("command: {}\npolicy: {}, {} to {} workers, starting with {}\n",
                  fmt::join(spec.argv, " "), spec.policy, spec.limits.min, most, start);
  for (int rank = 0; rank < std::min(start, slots); ++rank) {
    const launcher::hosts::Slot& slot = plan.slots[static_cast<std::size_t>(rank)];
    text += fmt::format("rank {}: {} slot {}\n", rank, slot.host_name, slot.slot);
  }
  if (guessed)
    text += fmt::format("where no slots are named: as many as GPUs there; {} is a guess\n",
                        spec.default_slots);
  for (const launcher::hosts::Slot& slot : plan.spares)
    text += fmt::format("spare: {} slot {}\n", slot.host_name, slot.slot);
  for (const int size :
       launcher::hosts::reachable_sizes(plan.slots_by_host, spec.unit, spec.limits, spec.start)) {
    const auto batch = autoscaler::plan(spec.batch, size, {});
    if (batch.global_batch > 0 && spec.batch.batch > 0)
      text += fmt::format("size {}: global batch {}\n", size, batch.global_batch);
    else if (batch.global_batch > 0)  // the program may name an efficient batch per worker
      text += fmt::format("size {}: global batch {} at most, as the program says\n", size,
                          batch.global_batch);
    else
      text += fmt::format("size {}: global batch as the program says\n", size);
  }
  return text;
}

}  // namespace elasticrun::cli::run
