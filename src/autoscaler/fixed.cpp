// See fixed.hpp.
#include "autoscaler/fixed.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace elasticrun::autoscaler {

Decision Fixed::decide(const Snapshot& snapshot, const Limits& limits, Time) {
  const int wanted = target_ > 0 ? target_ : limits.sizes.back();
  int goal = limits.sizes.front();
  for (const int size : limits.sizes)
    if (size <= wanted) goal = size;
  // After a loss the present size may be between two available ones: do not shrink it further.
  if (snapshot.size <= wanted) goal = std::max(goal, snapshot.size);

  const std::string what = target_ > 0
                               ? fmt::format("fixed at {} worker{}", wanted, wanted == 1 ? "" : "s")
                               : "fixed at all that can be had";
  std::string reason;
  if (goal > snapshot.size) {
    reason = fmt::format("{}, {} run: growing to {}", what, snapshot.size, goal);
  } else if (goal < snapshot.size) {
    reason = fmt::format("{}, {} run: shrinking to {}", what, snapshot.size, goal);
  } else if (goal == wanted) {
    reason = fmt::format("{}, {} run", what, goal);
  } else {
    reason = fmt::format("{}, {} run: no size nearer to it can be had", what, goal);
  }
  Decision made = decision(snapshot.size, goal, std::move(reason));
  made.figures = {{"wanted", static_cast<double>(wanted)}};
  return made;
}

}  // namespace elasticrun::autoscaler
