#include "worker/reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/check.hpp"

namespace elasticrun::worker {

namespace {

// From here on a copy costs more than a collective of its own.
constexpr std::size_t large_bytes = 1u << 20;

// Numbers of our own behind the caller's extras: GradientSquares::local and ::pieces.
constexpr std::size_t own_extras = 2;

template <class T>
void scaled_copy(T* __restrict to, const T* __restrict from, std::size_t count, T weight) {
  if (weight == T{1}) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = weight * from[i];
}

template <class T>
void scaled_add(T* __restrict to, const T* __restrict from, std::size_t count, T weight) {
  for (std::size_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

template <class T>
void scale(T* data, std::size_t count, T weight) {
  if (weight == T{1}) return;
  for (std::size_t i = 0; i < count; ++i) data[i] *= weight;
}

template <class T>
void take(bool first, T* to, const void* from, std::size_t count, T weight) {
  if (first)
    scaled_copy(to, static_cast<const T*>(from), count, weight);
  else
    scaled_add(to, static_cast<const T*>(from), count, weight);
}

// The sum of products, in double. A fixed number of lanes is what vectors need and what makes the
// sum the same on all ranks.
template <class T>
double dot(const T* a, const T* b, std::size_t count) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

Reduction::Reduction(const StateTable& table, std::size_t extras_max)
    : table_(table), type_(table.type()), extras_max_(extras_max) {
  ER_CHECK(table.sealed());
  const auto place = [&](const Tensor& tensor) {
    if (tensor.count == 0) return;
    const bool large = tensor.count * size_of(type_) >= large_bytes;
    std::size_t& total = large ? large_count_ : small_count_;
    (large ? large_places_ : small_places_).push_back({tensor.data, tensor.count, total});
    total += tensor.count;
  };
  for (const Tensor& tensor : table.gradients()) place(tensor);
  for (const Tensor& tensor : table.buffers()) place(tensor);
  fused_.resize((small_count_ + extras_max_ + own_extras) * size_of(type_));
}

void Reduction::begin_step(std::size_t compute_calls, double global_samples, bool measured) {
  ER_CHECK(global_samples > 0);
  measured_ = measured;
  local_ = 0;
  if (!measured) discard();
  calls_ = compute_calls;
  done_ = 0;
  global_samples_ = global_samples;
  if (calls_ > 1 && large_.empty()) large_.resize(large_count_ * size_of(type_));
}

void Reduction::accumulate(double samples) {
  ER_CHECK(done_ < calls_, "more calls of compute than said");
  const double weight = samples / global_samples_;
  if (type_ == DataType::float32)
    accumulate_as<float>(weight);
  else
    accumulate_as<double>(weight);
  ++done_;
}

template <class T>
void Reduction::accumulate_as(double weight) {
  // The only piece of a step is its mean, too, which is looked at later.
  if (measured_ && weight < 1) local_ += weight * square_of_gradients<T>();
  const T w = static_cast<T>(weight);
  for (const Place& place : small_places_)
    take(done_ == 0, fused_as<T>() + place.at, place.data, place.count, w);
  for (const Place& place : large_places_) {
    if (calls_ == 1)  // nothing overwrites it before it is reduced
      scale(static_cast<T*>(place.data), place.count, w);
    else
      take(done_ == 0, large_as<T>() + place.at, place.data, place.count, w);
  }
}

void Reduction::reduce(Group& group, std::span<double> extras) {
  ER_CHECK(done_ == calls_ && extras.size() <= extras_max_);
  if (type_ == DataType::float32)
    reduce_as<float>(group, extras);
  else
    reduce_as<double>(group, extras);
}

template <class T>
void Reduction::reduce_as(Group& group, std::span<double> extras) {
  for (const Place& place : large_places_) {
    if (calls_ == 0) std::memset(place.data, 0, place.count * sizeof(T));
    if (calls_ > 1) std::memcpy(place.data, large_as<T>() + place.at, place.count * sizeof(T));
    group.all_reduce(place.data, type_, place.count);
  }
  T* const fused = fused_as<T>();
  if (calls_ == 0) std::fill_n(fused, small_count_, T{0});
  for (std::size_t i = 0; i < extras.size(); ++i)
    fused[small_count_ + i] = static_cast<T>(extras[i]);
  T* const own = fused + small_count_ + extras.size();
  own[0] = static_cast<T>(local_);
  own[1] = static_cast<T>(calls_);
  group.all_reduce(fused, type_, small_count_ + extras.size() + own_extras);
  for (const Place& place : small_places_)
    std::memcpy(place.data, fused + place.at, place.count * sizeof(T));
  for (std::size_t i = 0; i < extras.size(); ++i)
    extras[i] = static_cast<double>(fused[small_count_ + i]);
  if (measured_) measure<T>(group.size(), static_cast<double>(own[0]), static_cast<double>(own[1]));
}

// ---------------------------------------------------------------- noise

// Of what is in the program's memory.
template <class T>
double Reduction::square_of_gradients() const {
  double sum = 0;
  for (const Tensor& tensor : table_.gradients()) {
    const T* const data = static_cast<const T*>(tensor.data);
    sum += dot(data, data, tensor.count);
  }
  return sum;
}

template <class T>
void Reduction::measure(int ranks, double local, double pieces) {
  const double total = square_of_gradients<T>();
  squares_ = {.local = pieces > 1 ? local : total,
              .total = total,
              .pieces = pieces,
              .samples = global_samples_};
  // With others the gradients before are not the same on all ranks: a newcomer has none.
  if (ranks == 1 && pieces == 1)
    measure_with_previous<T>();
  else
    discard();
}

template <class T>
void Reduction::measure_with_previous() {
  const double square = squares_.total, n = squares_.samples;
  const bool paired = previous_samples_ > 0;
  double cross = 0;
  std::size_t elements = 0;
  for (const Tensor& tensor : table_.gradients()) elements += tensor.count;
  previous_.resize(elements * sizeof(T));
  T* before = reinterpret_cast<T*>(previous_.data());
  for (const Tensor& tensor : table_.gradients()) {
    if (paired) cross += dot(before, static_cast<const T*>(tensor.data), tensor.count);
    std::copy_n(static_cast<const T*>(tensor.data), tensor.count, before);
    before += tensor.count;
  }
  if (paired) {
    const double m = previous_samples_, all = m + n;
    squares_ = {
        .local = (m * previous_square_ + n * square) / all,
        .total = (m * m * previous_square_ + n * n * square + 2 * m * n * cross) / (all * all),
        .pieces = 2,
        .samples = all,
        .biased = true};
  }
  previous_square_ = square;
  previous_samples_ = n;
}

}  // namespace elasticrun::worker
