// elasticctl simulate: shows what a policy would do on a described cluster, as text or as events.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/ctl/report.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::cli::ctl {

struct SimulateCommand {
  std::string curve;  // path of the file that describes the cluster
  simulate::what_if::Conditions conditions;
  simulate::what_if::Question question;
  int seeds = 1;      // number of simulations, with consecutive seeds
  bool json = false;  // print events instead of text
};

// `curve` is the content of the file that the command names.
Result<Report> simulate_command(const SimulateCommand& command,
                                const simulate::what_if::Curve& curve);

}  // namespace elasticrun::cli::ctl
