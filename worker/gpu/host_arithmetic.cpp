// Arithmetic on the CPU: loops that the compiler turns into vectors.
#include <array>
#include <cstring>
#include <numeric>

#include "worker/gpu/arithmetic.hpp"

namespace elasticrun::worker::gpu {
namespace {

// Free functions, so that the compiler knows that the two rows do not overlap.
template <class T>
void scaled_copy(T* __restrict to, const T* __restrict from, std::size_t count, T weight) {
  for (std::size_t i = 0; i < count; ++i) to[i] = weight * from[i];
}

template <class T>
void scale_in_place(T* data, std::size_t count, T weight) {
  for (std::size_t i = 0; i < count; ++i) data[i] *= weight;
}

template <class T>
void scaled_add(T* __restrict to, const T* __restrict from, std::size_t count, T weight) {
  for (std::size_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

// A fixed number of lanes lets the compiler use vectors, and makes the sum the same on all ranks.
template <class T>
double dot_of(const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class T>
class HostArithmetic final : public Arithmetic {
 public:
  Memory allocate(std::size_t bytes) override {
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void clear(void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  void scale(void* to, const void* from, std::size_t count, double weight) override {
    const T w = static_cast<T>(weight);
    if (w == T{1}) {
      if (to != from) copy(to, from, count * sizeof(T));
    } else if (to == from) {
      scale_in_place(static_cast<T*>(to), count, w);
    } else {
      scaled_copy(static_cast<T*>(to), static_cast<const T*>(from), count, w);
    }
  }
  void add(void* to, const void* from, std::size_t count, double weight) override {
    scaled_add(static_cast<T*>(to), static_cast<const T*>(from), count, static_cast<T>(weight));
  }
  double dot(std::span<const Factors> rows) override {
    double sum = 0;
    for (const Factors& row : rows)
      sum += dot_of(static_cast<const T*>(row.a), static_cast<const T*>(row.b), row.count);
    return sum;
  }
  void write(void* to, std::span<const double> numbers) override {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      static_cast<T*>(to)[i] = static_cast<T>(numbers[i]);
  }
  void read(const void* from, std::span<double> numbers) override {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<double>(static_cast<const T*>(from)[i]);
  }
  std::size_t large_bytes() const override { return 1u << 20; }
};

}  // namespace

std::unique_ptr<Arithmetic> make_host_arithmetic(collective::DataType type) {
  if (type == collective::DataType::float32) return std::make_unique<HostArithmetic<float>>();
  return std::make_unique<HostArithmetic<double>>();
}

}  // namespace elasticrun::worker::gpu
