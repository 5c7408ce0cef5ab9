// The manifest makes a folder with files a save: it names them with their sizes and hashes, and is
// written last. It ends with a hash of itself, so that a torn one is not taken for a whole one.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::save {

inline constexpr int format_version = 1;
inline constexpr const char* manifest_name = "manifest";
inline constexpr const char* contents_name = "contents";

// Both are pure. An error of decode says in what way the text is no manifest.
std::string encode(const wire::saved::Manifest& manifest);
Result<wire::saved::Manifest> decode(std::string_view text);

// The manifest of the save in this folder. Errors name the file.
Result<wire::saved::Manifest> read_manifest(const std::string& folder);
// The file `contents` of that save: its arrays, and the progress.
Result<wire::saved::Contents> read_contents(const std::string& folder,
                                            const wire::saved::Manifest& manifest);

}  // namespace elasticrun::save
