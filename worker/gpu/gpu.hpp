// This worker's GPU: its context, the program's stream, and whether the GPU has failed.
//
// The library works where the program works: in the primary context of the device, which the CUDA
// runtime also uses, and on the program's stream, so that a reduction begins when what compute has
// enqueued is done, without a wait for the whole device.
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
  // Opens device number `ordinal` of those that this process may use, or the only one when there is
  // only one. The error is a text for the user.
  static Result<std::shared_ptr<Gpu>> open(const std::string& host, int ordinal,
                                           const GpuLibraryNames& names = {});
  // The GPU that holds this memory; null when it is host memory, or the GPU cannot be opened. A
  // program that has not loaded the driver has only host memory, so nothing is loaded for it.
  static std::shared_ptr<Gpu> holding(const void* memory, const std::string& host,
                                      const GpuLibraryNames& names = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const cuda::Driver& cuda() const { return libraries_->cuda; }
  const nccl::Functions& nccl() const { return libraries_->nccl; }
  const GpuLibraries& libraries() const { return *libraries_; }
  const std::string& host() const { return host_; }
  // Why NCCL is not available; empty: it is.
  const Result<void>& nccl_usable() const { return libraries_->nccl_usable; }
  NcclFeatures features() const;

  // Makes the GPU's context current on the calling thread. Throws GroupBroken.
  void enter() const;
  // The same, before something is freed; returns false when the GPU is lost, for then the free
  // might wait for work that never ends.
  bool enter_to_free() const noexcept;
  cuda::Context context() const { return context_; }

  // Sets the stream on which the program enqueues; null is the default stream. Training thread.
  void use_stream(cuda::Stream stream);
  // The calling thread, one of the library's own, enqueues on another stream from now on.
  void work_on(cuda::Stream stream) const;
  // The stream on which the calling thread enqueues.
  cuda::Stream stream() const;

  int ordinal() const { return ordinal_; }
  std::string model() const;  // such as "NVIDIA H200"; empty: the driver does not report it
  // The number of the GPU that holds this memory; -1: it is host memory.
  int ordinal_of(const void* memory) const;
  bool holds(const void* memory) const { return ordinal_of(memory) >= 0; }
  // Enqueues a copy between host or GPU memory: host memory is read or written only when the stream
  // reaches the copy. copy_and_wait returns when the copy is done. Both throw GroupBroken.
  void copy(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const;
  void copy_and_wait(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const;

  // Waits until all that was enqueued on the program's stream is done. Throws GroupBroken.
  void wait() const;

  // Throws GroupBroken, naming the call, when it failed. A failure of CUDA is permanent: the
  // context is useless from then on, and health() returns the reason.
  void check(cuda::Status status, const char* call) const;
  // Marks the GPU as broken; the first reason is kept.
  void lose(const std::string& why) const;
  Result<void> health() const;  // an error says why the GPU is broken

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
  mutable Result<void> health_;
};

// Memory on the GPU that grows when more is needed.
class GpuBuffer {
 public:
  explicit GpuBuffer(const Gpu& gpu) : gpu_(gpu) {}
  ~GpuBuffer() { clear(); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // Returns memory of at least `bytes`; the contents are lost when it grows. Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes);
  std::size_t size() const { return bytes_; }
  void clear() noexcept;

 private:
  const Gpu& gpu_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Marks a place in a stream; reached() and wait() show when the stream has come to it.
class GpuEvent {
 public:
  explicit GpuEvent(const Gpu& gpu);
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void record(cuda::Stream stream);
  // Both throw GroupBroken when the GPU has failed.
  bool reached() const;
  void wait() const;  // only for work that cannot hang
  // What is enqueued there from now on runs when the marked stream has come to the mark.
  void hold(cuda::Stream stream) const;
  cuda::Event get() const { return event_; }

 private:
  const Gpu& gpu_;
  cuda::Event event_ = nullptr;
};

// A stream of the library's own, which does not wait for any other stream.
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
