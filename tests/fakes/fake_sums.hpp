// The sums of the fake NCCL: each rank puts a chunk into its slot of the shared memory, and adds up
// those of all. See fake_nccl.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "worker/collective/data_type.hpp"

namespace elasticrun::fake_gpu {

// The most that a rank hands over at once.
inline constexpr std::size_t chunk_bytes = 1u << 20;

template <class T, class Comm>
bool sum_up(Comm& comm, const T* from, T* to, std::size_t count) {
  constexpr std::size_t part = chunk_bytes / sizeof(T);
  for (std::size_t at = 0; at < count; at += part) {
    const std::size_t n = std::min(part, count - at);
    std::memcpy(comm.region->slot(static_cast<std::size_t>(comm.rank)), from + at, n * sizeof(T));
    if (!comm.barrier()) return false;
    for (std::size_t i = 0; i < n; ++i) {
      T sum = 0;
      for (int rank = 0; rank < comm.size; ++rank)
        sum += reinterpret_cast<const T*>(comm.region->slot(static_cast<std::size_t>(rank)))[i];
      to[at + i] = sum;
    }
    if (!comm.barrier()) return false;
  }
  return true;
}

// The sum of each element, rounded once.
template <class T, class Comm>
void sum_up_narrow(Comm& comm, const void* from, void* to, std::size_t count) {
  const auto* const numbers = static_cast<const T*>(from);
  std::vector<float> wide(count);
  for (std::size_t i = 0; i < count; ++i) wide[i] = worker::collective::widened(numbers[i]);
  if (!sum_up(comm, wide.data(), wide.data(), count)) return;
  for (std::size_t i = 0; i < count; ++i)
    worker::collective::narrow(wide[i], static_cast<T*>(to)[i]);
}

// `type` as NCCL numbers them.
template <class Comm>
void sum_up(Comm& comm, int type, const void* from, void* to, std::size_t count) {
  if (type == 6)
    sum_up_narrow<worker::collective::Float16>(comm, from, to, count);
  else if (type == 7)
    sum_up(comm, static_cast<const float*>(from), static_cast<float*>(to), count);
  else if (type == 9)
    sum_up_narrow<worker::collective::Bfloat16>(comm, from, to, count);
  else
    sum_up(comm, static_cast<const double*>(from), static_cast<double*>(to), count);
}

}  // namespace elasticrun::fake_gpu
