// See transfer_plan.hpp.
#include "worker/core/transfer_plan.hpp"

#include <algorithm>
#include <optional>

namespace elasticrun::worker::core {

namespace {

// Parts begin on cache lines, so that no chunk is copied with a shifted tail.
constexpr std::uint64_t alignment = 64;

// The index of `rank` in the sorted `ranks`; none when it is not in them.
std::optional<std::size_t> place_in(const std::vector<int>& ranks, int rank) {
  const auto found = std::ranges::lower_bound(ranks, rank);
  if (found == ranks.end() || *found != rank) return std::nullopt;
  return static_cast<std::size_t>(found - ranks.begin());
}

}  // namespace

TransferSides sides_of_transfer(const std::vector<bool>& holds) {
  std::vector<int> holders;
  TransferSides sides;
  for (std::size_t rank = 0; rank < holds.size(); ++rank)
    (holds[rank] ? holders : sides.receivers).push_back(static_cast<int>(rank));
  const std::size_t count = std::min(holders.size(), transfer_parts_max);
  for (std::size_t i = 0; i < count; ++i)
    sides.sources.push_back(holders[i * holders.size() / count]);
  return sides;
}

std::vector<TransferPart> plan_transfer(const std::vector<bool>& holds, std::uint64_t total_bytes) {
  const auto [sources, receivers] = sides_of_transfer(holds);
  if (sources.empty() || receivers.empty() || total_bytes == 0) return {};

  const std::uint64_t parts =
      std::clamp<std::uint64_t>(total_bytes / transfer_part_bytes_min, 1, sources.size());
  const auto begin = [&](std::uint64_t i) {
    return i == parts ? total_bytes : total_bytes * i / parts / alignment * alignment;
  };
  std::vector<TransferPart> plan;
  for (std::uint64_t i = 0; i < parts; ++i) {
    TransferPart part;
    part.offset = begin(i);
    part.bytes = begin(i + 1) - part.offset;
    part.route.push_back(sources[i]);
    for (std::size_t k = 0; k < receivers.size(); ++k)
      part.route.push_back(receivers[(i + k) % receivers.size()]);
    plan.push_back(std::move(part));
  }
  return plan;
}

// The peers in the largest plan: a smaller plan has only the first of its parts. The receivers form
// a circle, and part i enters the circle at receiver i.
std::vector<int> transfer_peers(int rank, const TransferSides& sides) {
  const std::vector<int>& receivers = sides.receivers;
  const std::size_t circle = receivers.size();
  if (circle == 0) return {};
  if (const auto part = place_in(sides.sources, rank)) return {receivers[*part % circle]};
  const auto place = place_in(receivers, rank);
  if (!place) return {};
  std::vector<int> peers;
  if (circle > 1)
    peers = {receivers[(*place + 1) % circle], receivers[(*place + circle - 1) % circle]};
  for (std::size_t part = *place; part < sides.sources.size(); part += circle)
    peers.push_back(sides.sources[part]);
  return peers;
}

}  // namespace elasticrun::worker::core
