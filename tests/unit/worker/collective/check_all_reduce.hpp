// Checks a sum over all ranks in every test of groups.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::testing {

template <class T>
void check_all_reduce(collective::Group& group, std::size_t count) {
  const auto type = sizeof(T) == 4 ? collective::DataType::float32 : collective::DataType::float64;
  std::vector<T> data(count);
  for (std::size_t i = 0; i < count; ++i)
    data[i] = static_cast<T>((group.rank() + 1) * static_cast<int>(i % 97 + 1));
  group.all_reduce(data.data(), type, count);
  const int ranks = group.size() * (group.size() + 1) / 2;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += data[i] != static_cast<T>(ranks * static_cast<int>(i % 97 + 1));
  CHECK(wrong == 0);
}

}  // namespace elasticrun::worker::testing
