// The driver's modules and launches: each kernel is a function here that has the name of the real
// one (worker/gpu/gpu_kernels.cu) and does the same. See fake_gpu.hpp.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tests/fakes/fake_gpu_state.hpp"

using namespace elasticrun::fake_gpu;

namespace {

// Copies the four parameters when a kernel is launched, and returns the kernel's work.
using Kernel = std::function<std::function<void()>(unsigned blocks, void** parameters)>;

template <class T>
T parameter(void** parameters, int i) {
  return *static_cast<T*>(parameters[i]);
}

template <class T>
std::function<void()> weigh(bool add, void** p) {
  auto* const to = parameter<T*>(p, 0);
  const auto* const from = parameter<const T*>(p, 1);
  const auto count = parameter<std::size_t>(p, 2);
  const T weight = parameter<T>(p, 3);
  return [=] {
    for (std::size_t i = 0; i < count; ++i) to[i] = (add ? to[i] : T{0}) + weight * from[i];
  };
}

template <class T>
std::function<void()> dot(unsigned blocks, void** p) {
  auto* const sums = parameter<double*>(p, 0);
  const auto* const a = parameter<const T*>(p, 1);
  const auto* const b = parameter<const T*>(p, 2);
  const auto count = parameter<std::size_t>(p, 3);
  return [=] {
    std::fill(sums, sums + blocks, 0.0);
    for (std::size_t i = 0; i < count; ++i)
      sums[i / 256 % blocks] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  };
}

const std::map<std::string, Kernel>& kernels() {
  static const std::map<std::string, Kernel> table = {
      {"scale_float32", [](unsigned, void** p) { return weigh<float>(false, p); }},
      {"scale_float64", [](unsigned, void** p) { return weigh<double>(false, p); }},
      {"add_float32", [](unsigned, void** p) { return weigh<float>(true, p); }},
      {"add_float64", [](unsigned, void** p) { return weigh<double>(true, p); }},
      {"dot_float32", [](unsigned blocks, void** p) { return dot<float>(blocks, p); }},
      {"dot_float64", [](unsigned blocks, void** p) { return dot<double>(blocks, p); }},
  };
  return table;
}

constexpr int success = 0, invalid_image = 200, not_found = 500;

}  // namespace

extern "C" {

int cuModuleLoadData(const char** module, const void* image) {
  *module = static_cast<const char*>(image);
  return std::strstr(*module, ".version") ? success : invalid_image;
}
int cuModuleUnload(const char*) { return success; }
int cuModuleGetFunction(const Kernel** function, const char* module, const char* name) {
  const auto found = kernels().find(name);
  const bool has = std::strstr(module, (".visible .entry " + std::string(name) + "(").c_str());
  if (!has || found == kernels().end()) return not_found;
  *function = &found->second;
  return success;
}
int cuLaunchKernel(const Kernel* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned, CUstream_st* stream, void** parameters, void**) {
  if (note("cuLaunchKernel") == Trouble::fail) return invalid_image;
  enqueue(stream, (*function)(blocks, parameters));
  return success;
}

}  // extern "C"
