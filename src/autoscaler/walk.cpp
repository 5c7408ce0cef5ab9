// See walk.hpp.
#include "autoscaler/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace elasticrun::autoscaler {

namespace {

// As in the authors' code. A step here is one size of the list; theirs is 4 workers.
constexpr std::size_t small_pairs = 3;

struct Pair {
  const Measure* low = nullptr;
  const Measure* high = nullptr;
  double gain = 0;
};

std::vector<Pair> pairs(const std::vector<Measure>& tried) {
  std::vector<Pair> found;
  for (std::size_t i = 1; i < tried.size(); ++i) {
    const Measure& low = tried[i - 1];
    const Measure& high = tried[i];
    const double added = (high.all_samples_per_s - low.all_samples_per_s) / (high.size - low.size);
    found.push_back({&low, &high, added / (low.all_samples_per_s / low.size)});
  }
  return found;
}

std::string pair_text(const Pair& pair) {
  return fmt::format("{} -> {} workers: {:.2f} of a full worker's worth", pair.low->size,
                     pair.high->size, pair.gain);
}

}  // namespace

ThroughputWalk::Next ThroughputWalk::next(const Snapshot& snapshot, const Limits& limits) const {
  std::vector<Measure> tried;
  for (const Measure& measure : snapshot.curve)
    if (measure.all_steps >= limits.min_steps &&
        std::ranges::binary_search(limits.sizes, measure.size))
      tried.push_back(measure);
  if (tried.empty()) return {snapshot.size, "no size of the list has been measured", false};
  const std::vector<Pair> all = pairs(tried);
  const auto fails = [&](const Pair& pair) { return !(pair.gain > limits.min_gain); };
  const auto first = std::ranges::find_if(all, fails);
  const int smallest = tried.front().size;
  const int largest = tried.back().size;
  const auto below = std::ranges::lower_bound(limits.sizes, smallest);
  const auto above = std::ranges::upper_bound(limits.sizes, largest);
  if (first == all.end()) {
    if (above != limits.sizes.end())
      return {*above, fmt::format("all {} pairs measured pass: on to {}", all.size(), *above),
              false};
    if (all.empty() && below != limits.sizes.begin())
      return {*(below - 1), "no larger size can be had: a smaller one to compare", false};
    return {largest, fmt::format("all {} pairs measured pass: {} it is", all.size(), largest),
            true};
  }
  const bool small = first - all.begin() < static_cast<std::ptrdiff_t>(small_pairs);
  if (small && below != limits.sizes.begin())
    return {*(below - 1),
            fmt::format("{}, not more than {:.2f}: on to {}", pair_text(*first), limits.min_gain,
                        *(below - 1)),
            false};
  const std::string wanting =
      fmt::format("{}, not more than {:.2f}", pair_text(*first), limits.min_gain);
  if (first->high->all_steps < limits.confirm_steps)
    return {first->high->size,
            fmt::format("{}: {} steps at {} to be sure", wanting, limits.confirm_steps,
                        first->high->size),
            false};
  return {first->low->size, fmt::format("{}: {} it is", wanting, first->low->size), true};
}

Decision ThroughputWalk::decide(const Snapshot& snapshot, const Limits& limits, Time) {
  if (settled_ != 0 && sizes_ == limits.sizes) {
    const auto at = std::ranges::upper_bound(limits.sizes, settled_);
    const int goal = at == limits.sizes.begin() ? limits.sizes.front() : *(at - 1);
    return decision(snapshot.size, goal, fmt::format("settled at {}", settled_));
  }
  settled_ = 0;
  const auto here = std::ranges::find(snapshot.curve, snapshot.size, &Measure::size);
  if (here == snapshot.curve.end() || here->steps < limits.min_steps)
    return decision(snapshot.size, snapshot.size,
                    fmt::format("measuring {} over {} steps", snapshot.size, limits.min_steps));
  Next found = next(snapshot, limits);
  if (found.settled) {
    settled_ = found.target;
    sizes_ = limits.sizes;
  }
  return decision(snapshot.size, found.target, std::move(found.reason));
}

}  // namespace elasticrun::autoscaler
