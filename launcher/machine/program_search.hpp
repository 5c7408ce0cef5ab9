// The paths at which a program may be, as a shell searches PATH. For the code that starts a program
// and for the code that checks whether it exists. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::launcher::machine {

// The value of the variable `name` in `env` (NAME=VALUE); empty when it is not set.
std::string_view value_of(std::string_view name, const std::vector<std::string>& env);

// A name with a slash is a path and is not searched.
inline bool is_searched(std::string_view program) { return program.find('/') == program.npos; }

// A path that is not absolute is relative to the working directory.
std::string path_from(std::string_view working_directory, const std::string& path);

// The candidate paths in search order; `path` is the value of PATH.
std::vector<std::string> program_candidates(const std::string& program, std::string_view path);

}  // namespace elasticrun::launcher::machine
