// The last steps before a program runs: search, directory, descriptors, signals, exec.
#pragma once

#include <string>

#include "wire/messages.hpp"

namespace elasticrun::launcher {

struct ExecFailure {
  int code = 127;    // as a shell would exit: 126 or 127
  std::string text;  // for a person
};

// Replaces this process, a fresh fork whose descriptors 0, 1 and 2 are the worker's, by the
// program. Returns only when that failed.
ExecFailure exec_program(const wire::StartWorker& order, const std::string& host);

}  // namespace elasticrun::launcher
