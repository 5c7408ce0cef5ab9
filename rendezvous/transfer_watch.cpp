// See transfer_watch.hpp.
#include "rendezvous/transfer_watch.hpp"

#include <algorithm>

namespace elasticrun::rendezvous {
namespace {

// The rate at which a slow machine hashes and copies its state; no byte moves meanwhile.
constexpr double bytes_per_second = 200e6;

}  // namespace

void TransferWatch::begin(const std::vector<wire::Member>& members, std::uint64_t state_bytes,
                          Duration patience, const std::vector<WorkerId>& training, Time now) {
  end();
  began_ = last_sign_ = now;
  for (const wire::Member& member : members) count(members_[member.worker], 1);
  for (const WorkerId worker : training)
    if (const auto found = members_.find(worker); found != members_.end())
      found->second.trains = true;
  const auto work =
      std::chrono::duration<double>(static_cast<double>(state_bytes) / bytes_per_second);
  patience_ = patience + std::chrono::duration_cast<Duration>(work);
}

void TransferWatch::sample(WorkerId worker, const wire::Sample& sample, Time now) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  Member& member = found->second;
  const Member before = member;
  const bool in_transfer = sample.phase == "transfer";
  const bool in_this_one = now - Duration(sample.waiting_ns) >= began_;
  member.stuck = !member.trains && (sample.phase == "reduce" || (in_transfer && !in_this_one));
  member.moving = in_transfer && !member.stuck;
  member.busy = !member.moving && !member.stuck && sample.phase != "idle";
  member.bytes = sample.transfer_bytes;
  count(before, -1);
  count(member, 1);
  const bool progress =
      member.busy || before.busy || member.moving != before.moving || member.bytes != before.bytes;
  if (progress) last_sign_ = now;
}

void TransferWatch::entered(WorkerId worker, Time now) {
  if (const auto found = members_.find(worker); found != members_.end()) {
    count(found->second, -1);
    members_.erase(found);
  }
  last_sign_ = now;
}

void TransferWatch::end() {
  members_.clear();
  busy_ = waiting_ = 0;
}

void TransferWatch::count(const Member& member, int by) {
  busy_ += member.busy ? by : 0;
  waiting_ += member.waits() ? by : 0;
}

Time TransferWatch::deadline() const {
  return busy_ == 0 && waiting_ > 0 ? last_sign_ + patience_ : never;
}

std::vector<WorkerId> TransferWatch::stuck() const {
  std::vector<WorkerId> stuck;
  for (const auto& [worker, member] : members_)
    if (member.stuck) stuck.push_back(worker);
  return stuck;
}

}  // namespace elasticrun::rendezvous
