// See communicator_cache.hpp.
#include "worker/gpu/communicator_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::gpu {

void CommunicatorCache::put(std::shared_ptr<Communicator> communicator) {
  {
    const std::lock_guard lock(mutex_);
    parent_.swap(communicator);
  }
  // Nobody shrinks the old one any more; its group has closed, or does so.
  if (communicator && communicator->halted()) discard(std::move(communicator));
}

std::shared_ptr<Communicator> CommunicatorCache::parent() const {
  const std::lock_guard lock(mutex_);
  return parent_;
}

void CommunicatorCache::discard(std::shared_ptr<Communicator> communicator) noexcept {
  communicator->release();
  const std::lock_guard lock(mutex_);
  if (parent_ == communicator) parent_.reset();
  if (std::ranges::find(ending_, communicator) == ending_.end())
    ending_.push_back(std::move(communicator));
  std::erase_if(ending_, [](const auto& one) { return one->ended(); });
}

void CommunicatorCache::await_ended() noexcept {
  std::vector<std::shared_ptr<Communicator>> ending;  // the destructors wait
  {
    const std::lock_guard lock(mutex_);
    ending.swap(ending_);
  }
}

nccl::UniqueId CommunicatorCache::acquire() {
  const std::lock_guard lock(mutex_);
  if (unused_) return *std::exchange(unused_, std::nullopt);
  nccl::UniqueId id;
  if (gpu_->nccl().unique_id(&id) != nccl::success)
    throw collective::GroupBroken(
        fmt::format("NCCL gave no unique id: {}", gpu_->nccl().last_error(nullptr)));
  return id;
}

void CommunicatorCache::release(const nccl::UniqueId& id) {
  const std::lock_guard lock(mutex_);
  unused_ = id;
}

std::string to_hex(const nccl::UniqueId& id) {
  std::string text;
  for (const char byte : id.internal)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<nccl::UniqueId> unique_id_from(std::string_view hex) {
  nccl::UniqueId id;
  if (hex.size() != 2 * sizeof id.internal) return std::nullopt;
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    const char* const first = hex.data() + 2 * i;
    unsigned char byte = 0;
    if (std::from_chars(first, first + 2, byte, 16).ptr != first + 2) return std::nullopt;
    id.internal[i] = static_cast<char>(byte);
  }
  return id;
}

}  // namespace elasticrun::worker::gpu
