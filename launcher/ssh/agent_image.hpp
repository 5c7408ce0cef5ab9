// The agent as a file to be copied: its bytes, the name its content gives it, the machines it runs
// on.
//
// The name is a hash of the content and not the version: a rebuilt agent of the same version must
// not meet the old one on some hosts. Pure.
#pragma once

#include <string>

#include "base/result.hpp"

namespace elasticrun::launcher::ssh {

struct AgentImage {
  std::string bytes;
  std::string hash;    // 32 hexadecimal digits
  std::string system;  // what `uname -sm` prints where it runs, as "Linux x86_64"
};

// `path` is for errors: a file that is no program for Linux, or for a machine we do not know.
Result<AgentImage> agent_image(std::string bytes, const std::string& path);

}  // namespace elasticrun::launcher::ssh
