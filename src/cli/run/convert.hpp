// From texts to meaning: every value checked, alone and against the others.
#pragma once

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"
#include "launcher/machine/machine.hpp"

namespace elasticrun::cli::run {

// Reads the host file, if one is named. Program and environment of the spec are left to the caller.
Result<job::JobSpec> to_spec(const Settings& settings, const launcher::machine::Machine& machine);

}  // namespace elasticrun::cli::run
