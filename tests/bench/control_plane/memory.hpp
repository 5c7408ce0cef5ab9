// Counts the memory that one side of a simulation asks for, while both live in one process.
//
// The resident set of the process would hold the simulated hosts and workers as well, and the
// allocator's leftovers. So the bench replaces operator new: what is allocated inside the
// controller's turns is the controller's until it is freed, whoever frees it.
#pragma once

#include <cstddef>

namespace elasticrun::bench {

// From now on allocations are counted, or are not.
void count_memory(bool on);
// Bytes asked for and not freed yet; and the most there ever were since the last reset.
std::size_t counted_bytes();
std::size_t most_counted_bytes();
void reset_most_counted_bytes();

}  // namespace elasticrun::bench
