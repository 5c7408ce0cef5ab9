// Python scripts and modules as programs: they are run by the interpreter that the caller would
// use.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::cli::run {

// Whether the program, as it is on the command line, is `-m` with a module, or a script: a file
// whose name ends with .py and that cannot be run by itself: it is not executable, or has no #!.
bool is_python(const std::vector<std::string>& program);
// The command that the workers run for it. The interpreter is that of the virtual environment in
// which this program is installed, else the python3, or python, of PATH in `environment`, which is
// that of an active virtual environment; it does not buffer its output. An error says what is
// missing.
Result<std::vector<std::string>> python_command(std::vector<std::string> program,
                                                const std::vector<std::string>& environment);

}  // namespace elasticrun::cli::run
