// The flags that say where hosts come from and which of them count, as a part of the conversion:
// they are the only ones whose meaning lies outside of this program, in a file or in what a
// person's program prints.
#pragma once

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"

namespace elasticrun::cli::run {

// Host file, list or program, whichever has the stronger source, and --include and --exclude. Reads
// the file; runs nothing.
Result<void> read_host_flags(const Settings& settings, job::JobSpec& spec);

// Runs the program if there is one, and chooses. Needs the slots of hosts that do not say, and
// deadlines. Leaves a spec without hosts where none were asked for.
Result<void> find_hosts(const Settings& settings, job::JobSpec& spec);

}  // namespace elasticrun::cli::run
