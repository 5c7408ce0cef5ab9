// See state_comparison.hpp.
#include "worker/state/state_comparison.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <map>

namespace elasticrun::worker::state {
namespace {

constexpr std::uint64_t slice_min = 1024;  // bytes; a small state has fewer slices than steps

}  // namespace

std::optional<std::vector<int>> odd_ranks(std::span<const std::uint64_t> hashes) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const std::uint64_t hash : hashes) ++counts[hash];
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  if (most == counts.end() || 2 * most->second <= hashes.size()) return std::nullopt;
  std::vector<int> odd;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank)
    if (hashes[rank] != most->first) odd.push_back(static_cast<int>(rank));
  return odd;
}

StateComparison::StateComparison(const StateTable& table, std::int64_t steps)
    : segments_(table.registered()),
      image_(table.registered(), table.gpu()),
      bytes_(table.registered_bytes()) {
  if (steps > 0 && bytes_ > 0)
    slices_ = std::clamp<std::uint64_t>(bytes_ / slice_min, 1, static_cast<std::uint64_t>(steps));
}

std::uint64_t StateComparison::look(std::int64_t step) {
  const std::uint64_t slice = static_cast<std::uint64_t>(step) % slices_;
  const std::uint64_t each = bytes_ / slices_, rest = bytes_ % slices_;
  begin_ = slice * each + std::min(slice, rest);
  end_ = begin_ + each + (slice < rest ? 1 : 0);
  const std::size_t count = end_ - begin_;
  const std::byte* from = image_.in_one_piece(begin_, count);
  if (!from) {
    copy_.resize(count);
    image_.copy_out(begin_, count, copy_.data());
    from = copy_.data();
  }
  return XXH3_64bits(from, count);
}

std::string StateComparison::where() const {
  std::string text;
  std::uint64_t at = 0;
  for (const Segment& segment : segments_) {
    const std::uint64_t first = std::max(begin_, at), last = std::min(end_, at + segment.bytes);
    if (first < last)
      text +=
          fmt::format("{}bytes {} to {} of {}", text.empty() ? "" : ", ", first - at, last - 1 - at,
                      segment.name.empty() ? "the buffers" : "'" + segment.name + "'");
    at += segment.bytes;
    if (text.size() > 200) return text + ", ...";
  }
  return text;
}

}  // namespace elasticrun::worker::state
