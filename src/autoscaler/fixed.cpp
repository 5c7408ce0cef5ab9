// See fixed.hpp.
#include "autoscaler/fixed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/decision_text.hpp"
#include "base/text.hpp"

namespace elasticrun::autoscaler {

Decision Fixed::decide(const Snapshot& snapshot, const Limits& limits, Time) {
  const int wanted = target_ > 0 ? target_ : limits.sizes.back();
  int goal = limits.sizes.front();
  for (const int size : limits.sizes)
    if (size <= wanted) goal = size;
  // After a loss the present size may be between two available ones: do not shrink it further.
  if (snapshot.size <= wanted) goal = std::max(goal, snapshot.size);

  const std::string run =
      counted(snapshot.size, "worker") + (snapshot.size == 1 ? " runs" : " run");
  const std::string aim = target_ > 0 ? fmt::format("of the {} asked for", wanted)
                                      : fmt::format("of {} that are possible", wanted);
  std::string reason;
  if (goal == wanted && goal == snapshot.size) {
    reason = fmt::format("{}, {}", run, target_ > 0 ? "as asked for" : "as many as are possible");
  } else if (goal == snapshot.size) {
    reason = fmt::format("{}, {}: no size nearer to it is possible", run, aim);
  } else {
    reason = fmt::format("{}, {}: {} to {}", run, aim, direction(snapshot.size, goal), goal);
  }
  Decision made = decision(snapshot.size, goal, std::move(reason));
  made.figures = {{"wanted", static_cast<double>(wanted)}};
  return made;
}

}  // namespace elasticrun::autoscaler
