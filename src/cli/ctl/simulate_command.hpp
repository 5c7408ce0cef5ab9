// elasticctl simulate: what a policy would do with a described cluster, as text or as events.
#pragma once

#include <string>

#include "base/result.hpp"
#include "simulate/what_if/what_if.hpp"

namespace elasticrun::cli::ctl {

struct SimulateCommand {
  std::string curve;  // a file
  simulate::what_if::Conditions conditions;
  simulate::what_if::Question question;
  int seeds = 1;
  bool json = false;
};

struct Report {
  std::string text;
};

// All that is to be printed.
Result<Report> simulate_command(const SimulateCommand& command,
                                const simulate::what_if::Curve& curve);

}  // namespace elasticrun::cli::ctl
