// Which file of Python a command runs: `python3 -u train.py`, `python3 -m package.train`, or a
// script that names its own interpreter, `./train.py`.
//
// The controller, which copies that file to hosts that lack it, and the agent, which runs the copy,
// read the same command and so agree on it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace elasticrun::launcher::machine {

struct PythonSource {
  std::size_t argument = 0;  // of the command: the script; the name of a module stands there, too
  bool module = false;  // it is found along the module path, where the working directory is first
  // Where it may lie: relative to the working directory unless absolute, the first one found
  // counts.
  std::vector<std::string> files;
};

// Nothing for other commands, and where the interpreter reads its standard input or an argument.
std::optional<PythonSource> python_source(const std::vector<std::string>& command);

}  // namespace elasticrun::launcher::machine
