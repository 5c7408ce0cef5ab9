// Edit distance by dynamic programming (Damerau's four kinds of typing mistakes, in the restricted
// variant).
#include "cli/suggest.hpp"

#include <algorithm>
#include <vector>

namespace elasticrun::cli {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::string_view closest(std::string_view name, std::span<const std::string_view> known) {
  constexpr std::size_t longest = 40;  // longer than the name of any flag
  if (name.empty() || name.size() > longest) return {};
  std::string_view best;
  int least = static_cast<int>(std::max<std::size_t>(1, name.size() / 3)) + 1;
  for (const std::string_view candidate : known) {
    // A name that was cut short or extended counts as near, however many letters are missing or
    // added.
    const bool prefix = name.size() >= 3 && candidate.size() >= 3 &&
                        (candidate.starts_with(name) || name.starts_with(candidate));
    const int distance = prefix ? 1 : edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace elasticrun::cli
