// Converts the texts of the flags to a JobSpec; checks every value, alone and against the others.
#pragma once

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"
#include "launcher/hosts/allocation.hpp"
#include "launcher/machine/machine.hpp"

namespace elasticrun::cli::run {

// Reads the host file, if one is named, and runs the program of --host-discovery. `environment`
// says which hosts a batch system has given us. The caller fills in the program (argv) and the
// environment of the spec.
Result<job::JobSpec> to_spec(const Settings& settings,
                             const launcher::hosts::Variables& environment,
                             const launcher::machine::Machine& machine);

}  // namespace elasticrun::cli::run
