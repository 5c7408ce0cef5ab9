// The agent as a file to be copied: its bytes, a name derived from its content, and the machines it
// runs on.
//
// The name is a hash of the content and not the version: an agent that was rebuilt with the same
// version must not be mixed up with the old one that some hosts still have. Pure.
#pragma once

#include <string>

#include "base/result.hpp"

namespace elasticrun::launcher::ssh {

struct AgentImage {
  std::string bytes;
  std::string hash;    // 32 hexadecimal digits
  std::string system;  // `uname -sm` of the machines it runs on, such as "Linux x86_64"
};

// `path` is used in errors only. Fails for a file that is not a Linux program, or that is for an
// unknown machine.
Result<AgentImage> agent_image(std::string bytes, const std::string& path);

}  // namespace elasticrun::launcher::ssh
