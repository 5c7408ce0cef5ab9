// Chooses the run of an event file that elasticctl plan uses.
//
// --events appends, so a file may hold many runs, and their measurements must not be mixed: another
// run may have had other hosts, another batch, another model. The default is the last run that
// finished, because only a finished run shows how much work the job is; a run that was started
// later and stopped does not hide it.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/report/event.hpp"
#include "simulate/what_if/history.hpp"

namespace elasticrun::cli::ctl {

struct ChosenRun {
  simulate::what_if::History history;
  std::string job;     // its id; empty: the run recorded none
  std::string others;  // one line: the file's runs and which one this is; empty: not needed
};

// `job` is the value of --job, or empty; `file` names the log in errors.
Result<ChosenRun> choose_run(const std::vector<job::report::Event>& events, const std::string& job,
                             const std::string& file);

}  // namespace elasticrun::cli::ctl
