// The part of the conversion for the flags that say when the state is saved, and where.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"

namespace elasticrun::cli::run {

// --save, --save-every, --stop-signal and --time-limit. A relative folder is one of `cwd`.
Result<job::JobSpec::Saving> read_save_flags(const Settings& settings, const std::string& cwd);

// Inside Slurm the stop signal of a job that saves its state is USR1 where none is given: the one
// that its users give to --signal. Without --save it goes to the program, which may catch it.
void choose_stop_signal(job::JobSpec::Saving& saving, const std::vector<std::string>& environment);

}  // namespace elasticrun::cli::run
