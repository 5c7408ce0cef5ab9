// What a command of elasticctl returns.
#pragma once

#include <string>

namespace elasticrun::cli::ctl {

struct Report {
  std::string text;  // all that the command prints
};

}  // namespace elasticrun::cli::ctl
