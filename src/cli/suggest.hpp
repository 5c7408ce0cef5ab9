// "Did you mean": the known name nearest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace elasticrun::cli {

// Smallest number of insertions, deletions, changes of a letter and swaps of two neighbours.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, or empty when none is near enough to be a typing mistake.
std::string_view closest(std::string_view name, std::span<const std::string_view> known);

}  // namespace elasticrun::cli
