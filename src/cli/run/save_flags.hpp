// The part of the conversion for the flags that say when the state is saved, and where.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/run/settings.hpp"
#include "job/spec.hpp"
#include "launcher/hosts/allocation.hpp"

namespace elasticrun::cli::run {

// --save, --save-every, --stop-signal and --time-limit. A relative folder is one of `cwd`.
Result<job::JobSpec::Saving> read_save_flags(const Settings& settings, const std::string& cwd);

// Inside Slurm a job that saves its state can be requeued, and its stop signal is USR1 where none
// is given: the one that users of Slurm give to --signal. Without --save it goes to the program,
// which may catch it.
void fit_to_slurm(job::JobSpec::Saving& saving, const launcher::hosts::Variables& environment);

// Slurm ends the job after this time: that is its time limit, unless the user gave a nearer one.
void limit_to_slurm(job::JobSpec::Saving& saving, Duration left);

}  // namespace elasticrun::cli::run
