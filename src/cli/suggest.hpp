// For "did you mean": finds the known name nearest to an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace elasticrun::cli {

// The smallest number of insertions, deletions, replacements of a letter and swaps of two adjacent
// letters that turns one text into the other.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, or empty when none is near enough to be a typing mistake.
std::string_view closest(std::string_view name, std::span<const std::string_view> known);

}  // namespace elasticrun::cli
