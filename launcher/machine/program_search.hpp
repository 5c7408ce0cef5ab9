// Where a program may be: the search of a shell, for whoever starts one and for whoever looks
// whether it is there. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::launcher::machine {

// The value of a variable among NAME=VALUE; empty when it is not there.
std::string_view value_of(std::string_view name, const std::vector<std::string>& env);

// A name with a slash is a path and is not searched.
inline bool is_searched(std::string_view program) { return program.find('/') == program.npos; }

// In the order of the search. Those that are not absolute are relative to the working directory.
std::vector<std::string> program_candidates(const std::string& program, std::string_view path);

}  // namespace elasticrun::launcher::machine
