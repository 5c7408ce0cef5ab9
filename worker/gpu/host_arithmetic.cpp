// Arithmetic on the CPU: loops that the compiler turns into vectors.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "worker/gpu/arithmetic.hpp"

namespace elasticrun::worker::gpu {
namespace {

using collective::with_type;

template <class T>
constexpr bool is_narrow = std::is_class_v<T>;  // 16 bits

// What two types of numbers are computed in.
template <class A, class B>
using Between = std::conditional_t<(is_narrow<A> || std::is_same_v<A, float>)&&(
                                       is_narrow<B> || std::is_same_v<B, float>),
                                   float, double>;

template <class C, class T>
C loaded(T x) {
  if constexpr (is_narrow<T>)
    return static_cast<C>(collective::widened(x));
  else
    return static_cast<C>(x);
}

template <class C, class T>
void store(C x, T& to) {
  if constexpr (is_narrow<T>)
    collective::narrow(static_cast<float>(x), to);
  else if constexpr (std::is_integral_v<T>)
    to = static_cast<T>(std::llround(x));
  else
    to = static_cast<T>(x);
}

// Free functions, so that the compiler knows that the two rows do not overlap.
template <class To, class From, class C>
void scaled_copy(To* __restrict to, const From* __restrict from, std::size_t count, C weight) {
  for (std::size_t i = 0; i < count; ++i) store(weight * loaded<C>(from[i]), to[i]);
}

template <class T, class C>
void scale_in_place(T* data, std::size_t count, C weight) {
  for (std::size_t i = 0; i < count; ++i) store(weight * loaded<C>(data[i]), data[i]);
}

template <class To, class From, class C>
void scaled_add(To* __restrict to, const From* __restrict from, std::size_t count, C weight) {
  for (std::size_t i = 0; i < count; ++i)
    store(loaded<C>(to[i]) + weight * loaded<C>(from[i]), to[i]);
}

// A fixed number of lanes lets the compiler use vectors, and makes the sum the same on all ranks.
template <class T>
double dot_of(const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  const auto product = [&](std::size_t i) { return loaded<double>(a[i]) * loaded<double>(b[i]); };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += product(i + lane);
  for (; i < count; ++i) sums[0] += product(i);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

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
  void scale(Numbers to, Numbers from, std::size_t count, double weight) override {
    if (to.type == from.type && weight == 1) {
      if (to.data != from.data) copy(to.data, from.data, count * size_of(to.type));
      return;
    }
    with_type(to.type, [&](auto a) {
      with_type(from.type, [&](auto b) {
        using To = decltype(a);
        using From = decltype(b);
        const auto w = static_cast<Between<To, From>>(weight);
        if (to.data == from.data)
          scale_in_place(static_cast<To*>(to.data), count, w);
        else
          scaled_copy(static_cast<To*>(to.data), static_cast<const From*>(from.data), count, w);
      });
    });
  }
  void add(Numbers to, Numbers from, std::size_t count, double weight) override {
    with_type(to.type, [&](auto a) {
      with_type(from.type, [&](auto b) {
        using To = decltype(a);
        using From = decltype(b);
        scaled_add(static_cast<To*>(to.data), static_cast<const From*>(from.data), count,
                   static_cast<Between<To, From>>(weight));
      });
    });
  }
  double dot(std::span<const Factors> rows) override {
    double sum = 0;
    for (const Factors& row : rows)
      sum += with_type(row.type, [&](auto one) {
        using T = decltype(one);
        return dot_of(static_cast<const T*>(row.a), static_cast<const T*>(row.b), row.count);
      });
    return sum;
  }
  void write(void* to, std::span<const double> numbers) override {
    copy(to, numbers.data(), numbers.size_bytes());
  }
  void read(const void* from, std::span<double> numbers) override {
    copy(numbers.data(), from, numbers.size_bytes());
  }
  std::size_t large_bytes() const override { return 1u << 20; }
  DataType summed_as(DataType type) const override {
    return is_integer(type) ? DataType::float64 : gathered_as(type);
  }
};

}  // namespace

std::unique_ptr<Arithmetic> make_host_arithmetic() { return std::make_unique<HostArithmetic>(); }

}  // namespace elasticrun::worker::gpu
