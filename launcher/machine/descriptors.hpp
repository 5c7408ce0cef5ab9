// How many descriptors a process of ours may have open.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun::launcher::machine {

// Raises the soft limit as far as anybody can need it, and no further: where the hard limit is a
// thousand million, programs that close every descriptor there could be take minutes for it. Who is
// started from here inherits it. Returns the limit that is in force now.
std::size_t raise_descriptor_limit();

// What there must be for so many hosts (elasticrun) or workers (an agent): a person is told when it
// is less, once.
inline std::size_t descriptors_for_hosts(std::size_t hosts) { return 64 + 4 * hosts; }
inline std::size_t descriptors_for_workers(std::size_t workers) { return 32 + 8 * workers; }

// "12 hosts need about 112 descriptors, and the hard limit is 100; raise it, as with ulimit -Hn"
std::string too_few_descriptors(std::string_view what, std::size_t needed, std::size_t limit);

}  // namespace elasticrun::launcher::machine
