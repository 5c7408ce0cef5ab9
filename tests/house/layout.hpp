// Rules for where files lie, and that each of them is built.
#pragma once

#include <string>
#include <vector>

#include "tests/house/source.hpp"

namespace elasticrun::house {

// `entries`: the names at the top level of the tree.
Violations top_level_violations(const std::vector<std::string>& entries);
// Folders of src that the include table does not know.
Violations folder_violations(const std::vector<Source>& tree);
// Folders of the product with more than 20 names of files: more than a reader can take in.
Violations crowded_rooms(const std::vector<Source>& tree);
// Namespaces whose headers declare more than 40 types.
Violations crowded_namespaces(const std::vector<Source>& tree);
// Each part of a namespace must be a folder above the file, in their order, or the file's name.
Violations namespace_violations(const Source& source);
// Paths in `back quotes` on a page, with or without their first folders and ending, must exist.
Violations missing_from_page(const Source& page, const std::vector<Source>& tree);
// Sources that no CMakeLists.txt or .cmake file, beside or above them, names.
Violations unbuilt_sources(const std::vector<Source>& tree);
// Scripts must begin with what they do, when to run them, and an example.
Violations script_violations(const Source& source);

}  // namespace elasticrun::house
