// ER_CHECK: a bug stops the program at once, in every build. Not for input, not for the
// environment.
#pragma once

#include <string_view>

namespace elasticrun {

// Prints expression, place and detail to standard error and aborts.
[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               std::string_view detail);

}  // namespace elasticrun

#define ER_CHECK(condition, ...)                                            \
  ((condition) ? void(0)                                                    \
               : ::elasticrun::check_failed(#condition, __FILE__, __LINE__, \
                                            ::std::string_view{__VA_ARGS__}))
