// See named_samples.hpp.
#include "worker/core/named_samples.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace elasticrun::worker::core {

std::vector<std::string> named_samples(std::int64_t first, std::span<const std::int64_t> shares,
                                       const Permutation& order) {
  constexpr std::int64_t named_max = 64, digits_max = 20;
  constexpr std::int64_t bytes_max = 1 << 20;  // of all names
  const auto ranks = std::max<std::int64_t>(static_cast<std::int64_t>(shares.size()), 1);
  const std::int64_t most = std::min(named_max, bytes_max / digits_max / ranks);
  std::vector<std::string> texts;
  texts.reserve(shares.size());
  for (const std::int64_t share : shares) {
    std::string& text = texts.emplace_back();
    const std::int64_t named = std::min(share, most);
    for (std::int64_t i = 0; i < named; ++i)
      text += fmt::format("{}{}", i == 0 ? "" : " ", order[static_cast<std::uint64_t>(first + i)]);
    if (share > named)
      text += named > 0 ? fmt::format(" and {} more", share - named)
                        : fmt::format("({} of them)", share);
    first += share;
  }
  return texts;
}

}  // namespace elasticrun::worker::core
