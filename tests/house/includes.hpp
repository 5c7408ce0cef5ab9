// Which file may include which. Calls go down; facts come back up as event values.
#pragma once

#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// Checks folders, third-party headers and, in pure files, headers of the system.
Violations include_violations(const Source& source);
// Headers that no file includes.
Violations unused_headers(const std::vector<Source>& tree);

}  // namespace elasticrun::house
