#include "worker/reduction.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace elasticrun::worker {

namespace {

// From here on a copy costs more than a collective of its own.
constexpr std::size_t large_bytes = 1u << 20;

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

}  // namespace

Reduction::Reduction(const StateTable& table, std::size_t extras_max)
    : type_(table.type()), extras_max_(extras_max) {
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
  fused_.resize((small_count_ + extras_max_) * size_of(type_));
}

void Reduction::begin_step(std::size_t compute_calls, double global_samples) {
  ER_CHECK(global_samples > 0);
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
  group.all_reduce(fused, type_, small_count_ + extras.size());
  for (const Place& place : small_places_)
    std::memcpy(place.data, fused + place.at, place.count * sizeof(T));
  for (std::size_t i = 0; i < extras.size(); ++i)
    extras[i] = static_cast<double>(fused[small_count_ + i]);
}

}  // namespace elasticrun::worker
