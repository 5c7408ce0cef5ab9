// The content hash of a file.
#pragma once

#include <string>

#include "base/result.hpp"

namespace elasticrun::launcher::bundle {

// Reads all of the file. 32 hexadecimal digits, see content_hash.hpp.
Result<std::string> hash_of_file(const std::string& path);

}  // namespace elasticrun::launcher::bundle
