// What elasticrun says about itself.
#pragma once

#include <string>
#include <string_view>

namespace elasticrun::cli {

inline constexpr std::string_view version_text = "elasticrun 0.1.0\n";
inline constexpr std::string_view usage_line = "usage: elasticrun [options] program [args...]";

// The whole of --help, made from the table of flags; no line is longer than 80 columns.
std::string help_text();

}  // namespace elasticrun::cli
