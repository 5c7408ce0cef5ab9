// How much later than rank 0 the other ranks of a restarted program begin. Pure.
//
// What rank 0 opens first, the others dial first, and PyTorch waits for a second when it finds
// nobody there. All of them load the same things until then, in about the same time; so they need a
// lead that grows with that time.
#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace elasticrun::launcher::agent::workers {

// `took`: from the start of rank 0 until it listened, in the run before.
constexpr Duration lead_after(Duration took) {
  using std::chrono::milliseconds;
  return std::clamp<Duration>(took / 10, milliseconds(50), milliseconds(1000));
}

}  // namespace elasticrun::launcher::agent::workers
