// The last steps before a program runs: search, directory, descriptors, signals, exec.
#pragma once

#include <string>

#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

struct ExecFailure {
  int code = 127;    // as a shell would exit: 126 or 127
  std::string text;  // for the user
};

// Whether exec_program would find the program, or would find something in its place; of a command
// that runs a Python file, whether that file is there.
bool program_is_here(const wire::agent::StartWorker& order);

// Replaces this process by the program: by the file `program`, or, if that is empty, by what a
// search finds. The caller is a fresh fork whose descriptors 0, 1 and 2 are the worker's. Returns
// only on failure.
ExecFailure exec_program(const wire::agent::StartWorker& order, const std::string& host,
                         const std::string& program);

}  // namespace elasticrun::launcher::agent::workers
