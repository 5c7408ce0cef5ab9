// The names in the folder of --save (folder.hpp). Pure.
#pragma once

#include <cstdint>
#include <string>

namespace elasticrun::save {

inline constexpr const char* whole_prefix = "save-";
inline constexpr const char* draft_prefix = ".saving-";

// Where a save lies when it is whole.
inline std::string whole_of(const std::string& folder, std::int64_t number) {
  return folder + "/" + whole_prefix + std::to_string(number);
}
// Where its files are written first.
inline std::string draft_of(const std::string& folder, std::int64_t number) {
  return folder + "/" + draft_prefix + std::to_string(number);
}

}  // namespace elasticrun::save
