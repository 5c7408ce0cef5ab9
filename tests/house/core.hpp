// What keeps the core of a job readable: few fields in a class, short files, no call back.
#pragma once

#include "tests/house/source.hpp"

namespace elasticrun::house {

// Of a file below src/job/core; of others none.
Violations core_violations(const Source& source);

}  // namespace elasticrun::house
