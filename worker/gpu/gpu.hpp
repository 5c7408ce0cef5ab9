// This worker's GPU: its context, the stream of the program, and what fails on it.
//
// The library works where the program works: in the primary context of the device, which the CUDA
// runtime uses as well, and on the program's stream, so that a reduction begins when what compute
// has enqueued is done and nobody waits for the whole device.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/result.hpp"
#include "worker/gpu/nccl_library.hpp"
#include "worker/gpu/nccl_path.hpp"

namespace elasticrun::worker::gpu {

class Gpu {
 public:
  // Device number `ordinal` of those this process may use; the only one, when there is one.
  static Result<std::shared_ptr<Gpu>> open(const std::string& host, int ordinal,
                                           const GpuLibraryNames& names = {});
  // The GPU that holds this memory; null: it is the host's. A program that has not loaded the
  // driver has no other, so nothing is loaded for it.
  static std::shared_ptr<Gpu> holding(const void* memory, const std::string& host,
                                      const GpuLibraryNames& names = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const cuda::Driver& cuda() const { return libraries_->cuda; }
  const nccl::Functions& nccl() const { return libraries_->nccl; }
  const GpuLibraries& libraries() const { return *libraries_; }
  const std::string& host() const { return host_; }
  // Why there is no NCCL; empty: there is.
  const std::string& nccl_trouble() const { return libraries_->nccl_trouble; }
  NcclFeatures features() const;

  // Makes the context the calling thread's.
  void enter() const;
  // Likewise, to give something back; false: the GPU is lost, and might wait for what never ends.
  bool enter_to_free() const noexcept;
  cuda::Context context() const { return context_; }

  // The stream that the program enqueues on; null is the default stream. Training thread.
  void use_stream(cuda::Stream stream);
  cuda::Stream stream() const { return stream_; }

  int ordinal() const { return ordinal_; }
  std::string model() const;  // "NVIDIA H200"; empty: the driver does not say
  // Of the GPU that holds this memory; -1: it is the host's.
  int ordinal_of(const void* memory) const;
  bool holds(const void* memory) const { return ordinal_of(memory) >= 0; }
  // Between any two places. Enqueues it: host memory is read or written when the stream is there.
  void copy(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const;
  void copy_and_wait(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const;

  // Until all that was enqueued on the program's stream is done.
  void wait() const;

  // Throws GroupBroken, naming the call, when it failed. A failure of CUDA stays: the context is of
  // no use any more, and broken() says why.
  void check(cuda::Status status, const char* call) const;
  void lose(const std::string& why) const;
  std::string broken() const;  // empty: it is well

 private:
  Gpu(std::shared_ptr<const GpuLibraries> libraries, std::string host)
      : libraries_(std::move(libraries)), host_(std::move(host)) {}

  const std::shared_ptr<const GpuLibraries> libraries_;
  const std::string host_;
  int ordinal_ = 0;
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::string broken_;
};

// Memory on the GPU that grows when more is asked for.
class GpuBuffer {
 public:
  explicit GpuBuffer(const Gpu& gpu) : gpu_(gpu) {}
  ~GpuBuffer() { clear(); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // At least `bytes`; what was in it is lost when it grows. Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes);
  std::size_t size() const { return bytes_; }
  void clear() noexcept;

 private:
  const Gpu& gpu_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Marks a place in a stream; another thread or a poll learns when the stream is there.
class GpuEvent {
 public:
  explicit GpuEvent(const Gpu& gpu);
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void record(cuda::Stream stream);
  // Both throw GroupBroken when the GPU has failed.
  bool reached() const;
  void wait() const;  // for what cannot hang
  cuda::Event get() const { return event_; }

 private:
  const Gpu& gpu_;
  cuda::Event event_ = nullptr;
};

// A stream of the library's own, which waits for no other.
class GpuStream {
 public:
  explicit GpuStream(const Gpu& gpu);
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  cuda::Stream get() const { return stream_; }

 private:
  const Gpu& gpu_;
  cuda::Stream stream_ = nullptr;
};

}  // namespace elasticrun::worker::gpu
