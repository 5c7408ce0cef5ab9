// A stream of the library's own for one of its threads, beside the program's: what that thread
// enqueues comes after what the program had enqueued at the marks it asks for.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::gpu {

// All throw GroupBroken when the GPU has failed.
class SideStream {
 public:
  explicit SideStream(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {}

  // Any thread: remembers under a number how far the program's stream is.
  void mark(std::size_t number);
  // The library's thread: from now on it enqueues here, after these marks.
  void follow(std::span<const std::size_t> numbers);
  // The program's thread: what it enqueues from now on comes after all that was enqueued here.
  void join();

 private:
  const std::shared_ptr<const Gpu> gpu_;
  std::mutex mutex_;
  std::map<std::size_t, GpuEvent> marks_;
  std::optional<GpuStream> stream_;  // from the first follow() on
  std::optional<GpuEvent> joined_;
};

}  // namespace elasticrun::worker::gpu
