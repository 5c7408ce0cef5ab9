// Does an operation on numbers of 16 bits with floats in their place, so that what several ranks
// add up is rounded once.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::collective {

// `wide`: room for the floats, kept by the caller from one call to the next.
template <class Operation>
void in_float(const Group::Row& row, std::vector<float>& wide, Operation operation) {
  with_type(row.type, [&](auto one) {
    if constexpr (sizeof one == 2) {
      auto* const numbers = static_cast<decltype(one)*>(row.data);
      wide.resize(row.count);
      for (std::size_t i = 0; i < row.count; ++i) wide[i] = widened(numbers[i]);
      operation(Group::Row{wide.data(), DataType::float32, row.count});
      for (std::size_t i = 0; i < row.count; ++i) narrow(wide[i], numbers[i]);
    }
  });
}

}  // namespace elasticrun::worker::collective
