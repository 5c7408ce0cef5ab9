// elasticctl plan: what each size would bring, take and cost, from the events of an earlier run.
#pragma once

#include <string>
#include <vector>

#include "autoscaler/objective.hpp"
#include "cli/ctl/simulate_command.hpp"
#include "job/report/event.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::cli::ctl {

struct PlanCommand {
  std::string events;      // a file
  std::string job;         // whose run in it; empty: the last that came to its end
  std::string hosts;       // a host file, for prices and sizes; empty: hosts as the run had
  std::vector<int> sizes;  // empty: those that were measured, and some others
  double samples = 0;      // of the job; 0: as many as the run had
  double price = 1;        // of a worker per hour, where its host has none
  std::string policy;      // whose objective says which is best
  autoscaler::Aims aims;
  double min_gain = 0.1;
  bool json = false;
};

Result<Report> plan_command(const PlanCommand& command,
                            const std::vector<job::report::Event>& events,
                            const std::vector<launcher::hosts::Host>& hosts);

}  // namespace elasticrun::cli::ctl
