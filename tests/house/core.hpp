// Rules that keep the core of a job readable: few fields in a class, short files, no callbacks.
#pragma once

#include "tests/house/source.hpp"

namespace elasticrun::house {

// The violations in a file below src/job/core; none in other files.
Violations core_violations(const Source& source);

}  // namespace elasticrun::house
