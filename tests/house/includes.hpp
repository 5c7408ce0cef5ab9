// Who may include whom. Calls go down; facts come back up as event values.
#pragma once

#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// Folders, third-party headers and, in pure files, headers of the system.
Violations include_violations(const Source& source);
// Headers that nobody includes.
Violations unused_headers(const std::vector<Source>& tree);

}  // namespace elasticrun::house
