// Where the toy's model lies: on the GPU when TOY_GPU is set, which is the fake one, so the program
// can read and write there itself once it has waited for its stream.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <elasticrun/elasticrun.hpp>
#include <new>
#include <stdexcept>

class ToyDevice {
 public:
  ToyDevice() {
    if (!std::getenv("TOY_GPU")) return;
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (!library_) throw std::runtime_error(::dlerror());
    call<unsigned>("cuInit", 0u);
    void* context = nullptr;
    call<void**, int>("cuDevicePrimaryCtxRetain", &context, 0);
    call<void*>("cuCtxSetCurrent", context);
    call<void**, unsigned>("cuStreamCreate", &stream_, 0u);
  }

  // A model that lives as long as the process.
  template <class Model>
  Model& make() const {
    if (!library_) return *new Model;
    unsigned long long address = 0;
    call<unsigned long long*, std::size_t>("cuMemAlloc_v2", &address, sizeof(Model));
    return *new (reinterpret_cast<void*>(address)) Model;
  }
  void tell(elasticrun::Job& job) const {
    if (library_) job.stream(stream_);
  }
  // Until all that was enqueued is done.
  void wait() const {
    if (library_) call<void*>("cuStreamSynchronize", stream_);
  }

 private:
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    if (!function || function(arguments...) != 0) throw std::runtime_error(name);
  }

  void* library_ = nullptr;
  void* stream_ = nullptr;
};
