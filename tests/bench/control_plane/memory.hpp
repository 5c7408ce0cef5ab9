// Counts the memory that one side of a simulation asks for, while both live in one process.
//
// The resident set of the process would include the simulated hosts and workers, and the
// allocator's leftovers. So the bench replaces operator new: a block that is allocated inside one
// of the controller's turns counts as the controller's until it is freed, no matter where.
#pragma once

#include <cstddef>

namespace elasticrun::bench {

// Turns the counting of allocations on or off.
void count_memory(bool on);
// The counted bytes that are not freed yet, and their peak since the last reset.
std::size_t counted_bytes();
std::size_t most_counted_bytes();
void reset_most_counted_bytes();

}  // namespace elasticrun::bench
