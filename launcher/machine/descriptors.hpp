// The limit on open file descriptors of our processes (elasticrun and the agent).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun::launcher::machine {

// Raises the soft limit as far as a job can need it, and no further: child processes inherit it,
// and with a limit of 10^9, as some hard limits are, a program that closes every possible
// descriptor takes minutes. Returns the soft limit now in force.
std::size_t raise_descriptor_limit();

// The number of descriptors needed for N hosts (elasticrun) or N workers (an agent). When the limit
// is lower, the user gets one warning.
inline std::size_t descriptors_for_hosts(std::size_t hosts) { return 64 + 4 * hosts; }
inline std::size_t descriptors_for_workers(std::size_t workers) { return 32 + 8 * workers; }

// The warning: "12 hosts need about 112 descriptors, and the limit is 100; raise the hard limit
// ...". `what` is its subject.
std::string too_few_descriptors(std::string_view what, std::size_t needed, std::size_t limit);

}  // namespace elasticrun::launcher::machine
