// The command line of elasticctl.
#pragma once

#include <string>
#include <variant>

#include "base/result.hpp"
#include "cli/ctl/export_command.hpp"
#include "cli/ctl/plan_command.hpp"
#include "cli/ctl/simulate_command.hpp"

namespace elasticrun::cli::ctl {

// The command that the user asked for, or a text to print (help, version).
using Asked = std::variant<SimulateCommand, PlanCommand, ExportCommand, std::string>;
Result<Asked> parse_ctl(int argc, const char* const* argv);

}  // namespace elasticrun::cli::ctl
