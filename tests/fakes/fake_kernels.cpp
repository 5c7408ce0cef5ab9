// The driver's modules and launches: each kernel is a function here that has the name of the real
// one (worker/gpu/gpu_kernels.cu) and does the same. See fake_gpu.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>

#include "tests/fakes/fake_gpu_state.hpp"
#include "worker/collective/data_type.hpp"

using namespace elasticrun::fake_gpu;

namespace {

// Copies the four parameters when a kernel is launched, and returns the kernel's work.
using Kernel = std::function<std::function<void()>(unsigned blocks, void** parameters)>;

template <class T>
T parameter(void** parameters, int i) {
  return *static_cast<T*>(parameters[i]);
}

using elasticrun::worker::collective::Bfloat16;
using elasticrun::worker::collective::Float16;

template <class T>
double wide(T x) {
  if constexpr (std::is_class_v<T>)
    return static_cast<double>(elasticrun::worker::collective::widened(x));
  else
    return static_cast<double>(x);
}

template <class C, class T>
void store(C x, T& to) {
  if constexpr (std::is_class_v<T>)
    elasticrun::worker::collective::narrow(static_cast<float>(x), to);
  else
    to = static_cast<T>(x);
}

// C: what the kernel computes in, and the type of its weight.
template <class To, class From, class C>
std::function<void()> weigh(bool add, void** p) {
  auto* const to = parameter<To*>(p, 0);
  const auto* const from = parameter<const From*>(p, 1);
  const auto count = parameter<std::size_t>(p, 2);
  const C weight = parameter<C>(p, 3);
  return [=] {
    for (std::size_t i = 0; i < count; ++i)
      store((add ? static_cast<C>(wide(to[i])) : C{0}) + weight * static_cast<C>(wide(from[i])),
            to[i]);
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
    for (std::size_t i = 0; i < count; ++i) sums[i / 256 % blocks] += wide(a[i]) * wide(b[i]);
  };
}

template <class To, class From, class C>
Kernel scale_kernel() {
  return [](unsigned, void** p) { return weigh<To, From, C>(false, p); };
}
template <class To, class From, class C>
Kernel add_kernel() {
  return [](unsigned, void** p) { return weigh<To, From, C>(true, p); };
}
template <class T>
Kernel dot_kernel() {
  return [](unsigned blocks, void** p) { return dot<T>(blocks, p); };
}

const std::map<std::string, Kernel>& kernels() {
  static const std::map<std::string, Kernel> table = {
      {"scale_float32_from_float32", scale_kernel<float, float, float>()},
      {"scale_float64_from_float64", scale_kernel<double, double, double>()},
      {"scale_bfloat16_from_bfloat16", scale_kernel<Bfloat16, Bfloat16, float>()},
      {"scale_float16_from_float16", scale_kernel<Float16, Float16, float>()},
      {"scale_float32_from_bfloat16", scale_kernel<float, Bfloat16, float>()},
      {"scale_float32_from_float16", scale_kernel<float, Float16, float>()},
      {"scale_bfloat16_from_float32", scale_kernel<Bfloat16, float, float>()},
      {"scale_float16_from_float32", scale_kernel<Float16, float, float>()},
      {"scale_float64_from_int32", scale_kernel<double, std::int32_t, double>()},
      {"scale_float64_from_int64", scale_kernel<double, std::int64_t, double>()},
      {"scale_int32_from_float64", scale_kernel<std::int32_t, double, double>()},
      {"scale_int64_from_float64", scale_kernel<std::int64_t, double, double>()},
      {"add_float32_from_float32", add_kernel<float, float, float>()},
      {"add_float64_from_float64", add_kernel<double, double, double>()},
      {"add_float32_from_bfloat16", add_kernel<float, Bfloat16, float>()},
      {"add_float32_from_float16", add_kernel<float, Float16, float>()},
      {"dot_float32", dot_kernel<float>()},
      {"dot_float64", dot_kernel<double>()},
      {"dot_bfloat16", dot_kernel<Bfloat16>()},
      {"dot_float16", dot_kernel<Float16>()},
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
