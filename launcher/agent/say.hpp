// One line of the agent on standard error.
//
// Not fmt::print, which throws when nobody reads any more: the launcher's channel may be gone while
// the job goes on, and an agent must not die of having something to say.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace elasticrun::launcher::agent {

inline void say(std::string_view text) {
  const std::string line = "elasticrun-agent: " + std::string(text) + '\n';
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace elasticrun::launcher::agent
