// ER_CHECK stops the program at once when there is a bug, in every build. Not for errors in input
// or in the environment.
#pragma once

#include <string_view>

namespace elasticrun {

// Prints the expression, its place and the detail to standard error, and aborts.
[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               std::string_view detail);

}  // namespace elasticrun

#define ER_CHECK(condition, ...)                                            \
  ((condition) ? void(0)                                                    \
               : ::elasticrun::check_failed(#condition, __FILE__, __LINE__, \
                                            ::std::string_view{__VA_ARGS__}))
