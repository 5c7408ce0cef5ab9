// What the NCCL groups of a process leave to each other: the communicator that the next world may
// shrink, and a unique id that nobody has used.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "worker/gpu/nccl_communicator.hpp"

namespace elasticrun::worker::gpu {

class CommunicatorCache {
 public:
  CommunicatorCache(std::shared_ptr<Gpu> gpu, const NcclLimits& limits)
      : gpu_(std::move(gpu)), limits_(limits) {}

  const std::shared_ptr<Gpu>& gpu() const { return gpu_; }
  const NcclLimits& limits() const { return limits_; }

  // The communicator of the world that was stepped in last.
  void put(std::shared_ptr<Communicator> communicator);
  std::shared_ptr<Communicator> parent() const;
  // Clears the place when it is this one's.
  void take(const std::shared_ptr<Communicator>& communicator);

  // A unique id starts a thread of NCCL's in this process, which waits for the ranks; so one that
  // nobody has used is acquired again. Throws GroupBroken.
  nccl::UniqueId acquire();
  void release(const nccl::UniqueId& id);

 private:
  const std::shared_ptr<Gpu> gpu_;
  const NcclLimits limits_;
  mutable std::mutex mutex_;
  std::shared_ptr<Communicator> parent_;
  std::optional<nccl::UniqueId> unused_;
};

// As it is published.
std::string to_hex(const nccl::UniqueId& id);
std::optional<nccl::UniqueId> unique_id_from(std::string_view hex);

}  // namespace elasticrun::worker::gpu
