#include "worker/transfer_plan.hpp"

#include <algorithm>

namespace elasticrun::worker {

namespace {

// Parts begin on cache lines, so that no chunk is copied with a shifted tail.
constexpr std::uint64_t alignment = 64;

}  // namespace

std::vector<TransferPart> plan_transfer(const std::vector<bool>& holds, std::uint64_t total_bytes) {
  std::vector<int> holders, receivers;
  for (std::size_t rank = 0; rank < holds.size(); ++rank)
    (holds[rank] ? holders : receivers).push_back(static_cast<int>(rank));
  if (holders.empty() || receivers.empty() || total_bytes == 0) return {};

  const std::uint64_t parts =
      std::clamp<std::uint64_t>(total_bytes / transfer_part_bytes_min, 1, holders.size());
  const auto begin = [&](std::uint64_t i) {
    return i == parts ? total_bytes : total_bytes * i / parts / alignment * alignment;
  };
  std::vector<TransferPart> plan;
  for (std::uint64_t i = 0; i < parts; ++i) {
    TransferPart part;
    part.offset = begin(i);
    part.bytes = begin(i + 1) - part.offset;
    part.route.push_back(holders[i]);
    for (std::size_t k = 0; k < receivers.size(); ++k)
      part.route.push_back(receivers[(i + k) % receivers.size()]);
    plan.push_back(std::move(part));
  }
  return plan;
}

}  // namespace elasticrun::worker
