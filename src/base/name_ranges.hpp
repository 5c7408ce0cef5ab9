// Many host names as one short text, the way a host file writes them: "n[01-03,07], login". Pure.
#pragma once

#include <string>
#include <vector>

namespace elasticrun {

// Names that differ only in the number at their end are one item; the order is that of the first
// of each. At most `items` of them are written, then "...".
std::string fold_names(const std::vector<std::string>& names, std::size_t items = 6);

}  // namespace elasticrun
