// Writes many host names as one short text, as in a host file: "n[01-03,07], login". Pure.
#pragma once

#include <string>
#include <vector>

namespace elasticrun {

// Names that differ only in the number at their end become one item; items stand in the order of
// their first names. At most `items` of them are written, then "...".
std::string fold_names(const std::vector<std::string>& names, std::size_t items = 6);

}  // namespace elasticrun
