// See gpu.hpp.
#include "worker/gpu/gpu.hpp"

#include <fmt/format.h>

#include <array>
#include <new>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::gpu {
namespace {

cuda::Address address(const void* memory) { return reinterpret_cast<cuda::Address>(memory); }

// The number of the GPU that holds the memory; -1 for host memory, which includes all memory that
// the driver does not know.
int ordinal_of_memory(const cuda::Driver& cuda, const void* memory) {
  unsigned type = 0;
  int ordinal = -1;
  const bool known =
      cuda.pointer_attribute(&type, cuda::attribute_memory_type, address(memory)) ==
          cuda::success &&
      cuda.pointer_attribute(&ordinal, cuda::attribute_ordinal, address(memory)) == cuda::success;
  return known && type == cuda::memory_type_device ? ordinal : -1;
}

}  // namespace

Result<std::shared_ptr<Gpu>> Gpu::open(const std::string& host, int ordinal,
                                       const GpuLibraryNames& names) {
  auto libraries = load_gpu_libraries(host, names);
  if (!libraries) return libraries.error();
  const int devices = (*libraries)->devices;
  if (devices == 1) ordinal = 0;
  if (ordinal < 0 || ordinal >= devices)
    return Error{
        fmt::format("--backend nccl: this is worker {} of {}, which shows {} GPUs; give "
                    "it as many slots as GPUs",
                    ordinal, host, devices)};
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(*libraries), host));
  gpu->ordinal_ = ordinal;
  try {
    gpu->check(gpu->cuda().device(&gpu->device_, ordinal), "cuDeviceGet");
    gpu->check(gpu->cuda().retain_context(&gpu->context_, gpu->device_), "no context on the GPU");
  } catch (const collective::GroupBroken& error) {
    return Error{fmt::format("--backend nccl: {}; look at nvidia-smi there", error.what())};
  }
  return gpu;
}

std::shared_ptr<Gpu> Gpu::holding(const void* memory, const std::string& host,
                                  const GpuLibraryNames& names) {
  if (!is_loaded(names.cuda)) return nullptr;
  const auto libraries = load_gpu_libraries(host, names);
  if (!libraries) return nullptr;
  const int ordinal = ordinal_of_memory((*libraries)->cuda, memory);
  if (ordinal < 0) return nullptr;
  auto gpu = open(host, ordinal, names);
  return gpu ? *gpu : nullptr;
}

Gpu::~Gpu() {
  if (context_) cuda().release_context(device_);
}

NcclFeatures Gpu::features() const {
  return nccl_features(libraries_->nccl_version, {.scalable_init = nccl().init_scalable != nullptr,
                                                  .shrink = nccl().shrink != nullptr});
}

void Gpu::enter() const { check(cuda().set_context(context_), "cuCtxSetCurrent"); }

bool Gpu::enter_to_free() const noexcept {
  return health() && cuda().set_context(context_) == cuda::success;
}

// The per-thread default stream would mean another stream on the threads of NCCL that enqueue. The
// default stream of the device is the same on all threads, and the two wait for each other.
void Gpu::use_stream(cuda::Stream stream) {
  const bool of_thread = reinterpret_cast<std::uintptr_t>(stream) == cuda::stream_of_thread;
  stream_ = of_thread ? nullptr : stream;
}

std::string Gpu::model() const {
  std::array<char, 128> name{};
  const bool known = cuda().device_name(name.data(), static_cast<int>(name.size()), device_) == 0;
  return known ? name.data() : "";
}

int Gpu::ordinal_of(const void* memory) const { return ordinal_of_memory(cuda(), memory); }

namespace {

struct Own {
  const Gpu* gpu = nullptr;
  cuda::Stream stream = nullptr;
};
thread_local Own own;

}  // namespace

void Gpu::work_on(cuda::Stream stream) const { own = {this, stream}; }

cuda::Stream Gpu::stream() const { return own.gpu == this ? own.stream : stream_; }

void Gpu::copy(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const {
  check(cuda().copy(address(to), address(from), bytes, stream), "cuMemcpyAsync");
}

void Gpu::copy_and_wait(void* to, const void* from, std::size_t bytes, cuda::Stream stream) const {
  copy(to, from, bytes, stream);
  GpuEvent done(*this);
  done.record(stream);
  done.wait();
}

void Gpu::wait() const {
  enter();
  GpuEvent done(*this);
  done.record(stream_);
  done.wait();
}

void Gpu::check(cuda::Status status, const char* call) const {
  if (status == cuda::success) return;
  const char* text = nullptr;
  cuda().describe(status, &text);
  lose(fmt::format("the GPU of {} failed: {}: {} ({})", host_, call, text ? text : "unknown error",
                   status));
  throw collective::GroupBroken(health().error().text);
}

void Gpu::lose(const std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (health_) health_ = Error{why};
}

Result<void> Gpu::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

std::byte* GpuBuffer::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return data_;
  clear();
  gpu_.enter();
  cuda::Address made = 0;
  if (gpu_.cuda().allocate(&made, bytes) != cuda::success) throw std::bad_alloc();
  data_ = reinterpret_cast<std::byte*>(made);
  bytes_ = bytes;
  return data_;
}

void GpuBuffer::clear() noexcept {
  if (data_ && gpu_.enter_to_free()) gpu_.cuda().free(address(data_));
  data_ = nullptr;
  bytes_ = 0;
}

GpuEvent::GpuEvent(const Gpu& gpu) : gpu_(gpu) {
  gpu_.enter();
  gpu_.check(gpu_.cuda().create_event(&event_, cuda::event_no_timing), "cuEventCreate");
}

GpuEvent::~GpuEvent() { gpu_.cuda().destroy_event(event_); }

void GpuEvent::record(cuda::Stream stream) {
  gpu_.check(gpu_.cuda().record_event(event_, stream), "cuEventRecord");
}

void GpuEvent::hold(cuda::Stream stream) const {
  gpu_.check(gpu_.cuda().hold_stream(stream, event_, 0), "cuStreamWaitEvent");
}

bool GpuEvent::reached() const {
  const cuda::Status status = gpu_.cuda().query_event(event_);
  if (status == cuda::not_ready) return false;
  gpu_.check(status, "what was enqueued");
  return true;
}

void GpuEvent::wait() const {
  gpu_.check(gpu_.cuda().synchronize_event(event_), "what was enqueued");
}

GpuStream::GpuStream(const Gpu& gpu) : gpu_(gpu) {
  gpu_.enter();
  gpu_.check(gpu_.cuda().create_stream(&stream_, cuda::stream_non_blocking), "cuStreamCreate");
}

GpuStream::~GpuStream() { gpu_.cuda().destroy_stream(stream_); }

}  // namespace elasticrun::worker::gpu
