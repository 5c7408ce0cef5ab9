// elasticctl simulate: what a policy would do with a described cluster, as text or as events.
#pragma once

#include <string>

#include "base/result.hpp"
#include "simulate/what_if.hpp"

namespace elasticrun::cli {

struct SimulateCommand {
  std::string curve;  // a file
  simulate::Conditions conditions;
  simulate::Question question;
  int seeds = 1;
  bool json = false;
};

struct Report {
  std::string text;
};

// All that is to be printed.
Result<Report> simulate_command(const SimulateCommand& command, const simulate::Curve& curve);

}  // namespace elasticrun::cli
