// See transfer_watch.hpp.
#include "rendezvous/transfer_watch.hpp"

#include <algorithm>

namespace elasticrun::rendezvous {
namespace {

// A slow machine hashes and copies its state at this rate while no byte comes or goes.
constexpr double bytes_per_second = 200e6;

}  // namespace

void TransferWatch::begin(const std::vector<wire::Member>& members, std::uint64_t state_bytes,
                          Duration patience, Time now) {
  last_sign_ = now;
  members_.clear();
  for (const wire::Member& member : members) members_[member.worker];
  const auto work =
      std::chrono::duration<double>(static_cast<double>(state_bytes) / bytes_per_second);
  patience_ = patience + std::chrono::duration_cast<Duration>(work);
}

void TransferWatch::sample(WorkerId worker, const wire::Sample& sample, Time now) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  Member& member = found->second;
  const Member before = member;
  member.moving = sample.phase == "transfer";
  member.busy = !member.moving && sample.phase != "idle";
  member.bytes = sample.transfer_bytes;
  const bool progress =
      member.busy || before.busy || member.moving != before.moving || member.bytes != before.bytes;
  if (progress) last_sign_ = now;
}

void TransferWatch::entered(WorkerId worker, Time now) {
  members_.erase(worker);
  last_sign_ = now;
}

Time TransferWatch::deadline() const {
  const auto busy = [](const auto& entry) { return entry.second.busy; };
  const auto moving = [](const auto& entry) { return entry.second.moving; };
  if (std::ranges::any_of(members_, busy) || std::ranges::none_of(members_, moving)) return never;
  return last_sign_ + patience_;
}

}  // namespace elasticrun::rendezvous
