// See check.hpp.
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace elasticrun {

void check_failed(const char* expression, const char* file, int line, std::string_view detail) {
  std::fprintf(stderr, "elasticrun: internal error: %s (%s:%d) %.*s\n", expression, file, line,
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace elasticrun
