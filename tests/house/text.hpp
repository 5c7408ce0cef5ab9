// What a file looks like: its opening, its size, calls that we do without.
#pragma once

#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// Opening comment, lengths of lines and file, tabs, blanks at the end, notes to oneself, include
// guard.
Violations text_violations(const Source& source, const std::vector<Source>& tree);
// Calls that block, leak, overflow or read a clock where none may be read.
Violations call_violations(const Source& source);
// Functions longer than a screen. An estimate: it reads braces, not C++.
Violations function_violations(const Source& source);

}  // namespace elasticrun::house
