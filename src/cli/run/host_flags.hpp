// The part of the conversion for the flags that say where hosts come from and which of them count.
// They are kept apart because only their values come from outside of this program: from a file or
// from what a user's program prints.
#pragma once

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"
#include "launcher/hosts/allocation.hpp"

namespace elasticrun::cli::run {

// Takes the host file, list or program, whichever has the strongest source (command line,
// environment, configuration file), otherwise what a batch system has given us, and --include and
// --exclude, and how further hosts may join. Reads the host file; runs nothing.
Result<void> read_host_flags(const Settings& settings,
                             const launcher::hosts::Variables& environment, job::JobSpec& spec);

// Runs the discovery program if there is one, and applies --slots to the hosts of a batch system,
// and --include and --exclude to the hosts. The spec must already have its slots and deadlines. If
// the user named no hosts, the spec has none afterwards.
Result<void> find_hosts(const Settings& settings, job::JobSpec& spec);

}  // namespace elasticrun::cli::run
