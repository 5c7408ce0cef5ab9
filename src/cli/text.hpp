// The texts of --version and --help, and the usage line.
#pragma once

#include <string>
#include <string_view>

namespace elasticrun::cli {

// What --version prints.
std::string version_text(std::string_view program);
inline constexpr std::string_view usage_line = "usage: elasticrun [options] program [args...]";

// The whole output of --help, made from the table of flags; no line is longer than 80 columns.
std::string help_text();

}  // namespace elasticrun::cli
