// Rules for the text of a file: its opening, its size, and calls that are banned.
#pragma once

#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// Checks the opening comment, lengths of lines and file, tabs, blanks at the end, notes to oneself,
// and the include guard.
Violations text_violations(const Source& source, const std::vector<Source>& tree);
// Calls that block, leak, overflow or read a clock where none may be read.
Violations call_violations(const Source& source);
// Functions longer than a screen. An estimate: it reads braces, not C++.
Violations function_violations(const Source& source);

}  // namespace elasticrun::house
