// Where files lie, and that each of them is built.
#pragma once

#include <string>
#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// `entries`: the names at the top level of the tree.
Violations top_level_violations(const std::vector<std::string>& entries);
// Folders of src that the include table does not know.
Violations folder_violations(const std::vector<Source>& tree);
// A room that a reader can take in: at most 20 names of files in one folder of the product.
Violations crowded_rooms(const std::vector<Source>& tree);
// The parts of a namespace are names of folders above the file, in their order, or the file's own.
Violations namespace_violations(const Source& source);
// Paths in `back quotes` of a page, with or without their beginning and ending, that are not there.
Violations missing_from_page(const Source& page, const std::vector<Source>& tree);
// Sources that no CMakeLists.txt or .cmake file, beside or above them, names.
Violations unbuilt_sources(const std::vector<Source>& tree);
// Scripts begin with what they do, when to run them, and an example.
Violations script_violations(const Source& source);

}  // namespace elasticrun::house
