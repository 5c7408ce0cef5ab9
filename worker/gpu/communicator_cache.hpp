// What the NCCL groups of a process pass on to the next one: the communicator that the next world
// may shrink, those that have not ended yet, and a unique id that has not been used.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/gpu/nccl_communicator.hpp"

namespace elasticrun::worker::gpu {

class CommunicatorCache {
 public:
  CommunicatorCache(std::shared_ptr<Gpu> gpu, const NcclLimits& limits)
      : gpu_(std::move(gpu)), limits_(limits) {}

  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  const NcclLimits& limits() const { return limits_; }

  // Keeps the communicator of the last world that made a step; parent() returns it, or null.
  void put(std::shared_ptr<Communicator> communicator);
  std::shared_ptr<Communicator> parent() const;
  // Releases a communicator, which is nobody's parent any more, and keeps it until it has ended.
  // Does not wait for that; await_ended() and the destructor do.
  void discard(std::shared_ptr<Communicator> communicator) noexcept;
  void await_ended() noexcept;

  // acquire returns an unused unique id, release gives one back unused. A unique id starts a thread
  // of NCCL's in this process, which waits for the ranks; so an unused id is handed out again.
  // acquire throws GroupBroken.
  nccl::UniqueId acquire();
  void release(const nccl::UniqueId& id);

 private:
  const std::shared_ptr<Gpu> gpu_;
  const NcclLimits limits_;
  mutable std::mutex mutex_;
  std::shared_ptr<Communicator> parent_;
  std::vector<std::shared_ptr<Communicator>> ending_;
  std::optional<nccl::UniqueId> unused_;
};

// The form in which an id is published; unique_id_from returns nullopt for text that is not one.
std::string to_hex(const nccl::UniqueId& id);
std::optional<nccl::UniqueId> unique_id_from(std::string_view hex);

}  // namespace elasticrun::worker::gpu
