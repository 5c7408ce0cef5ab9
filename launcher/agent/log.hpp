// Prints one line of the agent on standard error.
//
// Not fmt::print, which throws when nothing reads the other end any more: the launcher's channel
// may be gone while the job continues, and a log line must not kill the agent.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/line.hpp"

namespace elasticrun::launcher::agent {

inline void log_line(std::string_view text) {
  const std::string line = "elasticrun-agent: " + as_own_line(text) + '\n';
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace elasticrun::launcher::agent
