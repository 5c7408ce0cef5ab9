// elasticctl plan: predicts throughput, time and cost of each size from the events of an earlier
// run.
#pragma once

#include <string>
#include <vector>

#include "autoscaler/objective.hpp"
#include "cli/ctl/report.hpp"
#include "job/report/event.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::cli::ctl {

struct PlanCommand {
  std::string events;      // path of the event file
  std::string job;         // id of the job whose run counts; empty: the last run that finished
  std::string hosts;       // host file, for prices and sizes; empty: hosts like those of the run
  std::vector<int> sizes;  // sizes to show; empty: the measured ones and some others
  double samples = 0;      // that the planned job trains; 0: as many as the run did
  double price = 1;        // of a worker per hour, where its host has no price
  std::string policy;      // its objective defines which size is best
  autoscaler::Aims aims;
  double min_gain = 0.1;
  bool json = false;
};

Result<Report> plan_command(const PlanCommand& command,
                            const std::vector<job::report::Event>& events,
                            const std::vector<launcher::hosts::Host>& hosts);

}  // namespace elasticrun::cli::ctl
