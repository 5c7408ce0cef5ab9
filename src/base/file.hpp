// Reads a file that a person has named.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace elasticrun {

// All of it. Returns an error, which names the file, when it is a folder, cannot be read, or is
// larger than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most);

}  // namespace elasticrun
