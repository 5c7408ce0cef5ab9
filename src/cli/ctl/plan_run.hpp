// Which run of an event file elasticctl plan goes by.
//
// --events appends, so a file may hold many runs, and what they measured must not be mixed: another
// run may have had other hosts, another batch, another model. By default it is the last one that
// came to its end, for only that one tells how much work the job is; a run that was tried and
// stopped behind it does not hide it.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/report/event.hpp"
#include "simulate/what_if/history.hpp"

namespace elasticrun::cli::ctl {

struct ChosenRun {
  simulate::what_if::History history;
  std::string job;     // its id; empty: it wrote none
  std::string others;  // what was chosen from and how, one line; empty: there is nothing to say
};

// `job` as --job says it, or empty; `file` is what errors call the log.
Result<ChosenRun> choose_run(const std::vector<job::report::Event>& events, const std::string& job,
                             const std::string& file);

}  // namespace elasticrun::cli::ctl
