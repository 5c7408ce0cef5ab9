// Memory of this worker's GPU and a stream, for a program that is not compiled for GPUs: the driver
// is loaded when it is asked for. A program with kernels of its own uses the CUDA runtime instead,
// as the example fashion_cuda does.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>

class GpuMemory {
 public:
  GpuMemory() : library_(::dlopen("libcuda.so.1", RTLD_NOW)) {
    if (!library_) throw std::runtime_error(::dlerror());
    const char* const local_rank = std::getenv("LOCAL_RANK");
    int count = 0, device = 0;
    void* context = nullptr;
    call<unsigned>("cuInit", 0u);
    call<int*>("cuDeviceGetCount", &count);
    call<int*, int>("cuDeviceGet", &device, local_rank && count > 1 ? std::atoi(local_rank) : 0);
    call<void**, int>("cuDevicePrimaryCtxRetain", &context, device);
    call<void*>("cuCtxSetCurrent", context);
    call<void**, unsigned>("cuStreamCreate", &stream_, 0u);
  }

  void* stream() const { return stream_; }
  // All zero; it lives as long as the process.
  void* allocate(std::size_t bytes) const {
    unsigned long long address = 0;
    call<unsigned long long*, std::size_t>("cuMemAlloc_v2", &address, bytes);
    call<unsigned long long, unsigned char, std::size_t, void*>("cuMemsetD8Async", address, '\0',
                                                                bytes, stream_);
    wait();
    return reinterpret_cast<void*>(address);
  }
  // Until all that was enqueued is done.
  void wait() const { call<void*>("cuStreamSynchronize", stream_); }

 private:
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    const int status = function ? function(arguments...) : -1;
    if (status != 0) throw std::runtime_error(name + std::string(": ") + std::to_string(status));
  }

  void* const library_;
  void* stream_ = nullptr;
};
