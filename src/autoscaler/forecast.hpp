// Whether a deadline or a budget can be met, as far as is known.
//
// A person who names a limit wants to hear at once when it cannot be kept, and what would be needed
// (Srift raises such an alarm). While a search is under way the answer is that of the most hopeful
// law: as long as one size may do it, it is not given up. Once the search has ended only sizes that
// were measured count, as fast as the error of the measure allows. So the answer is hopeful first
// and turns to "cannot" when hope has been measured away; it turns back only when there is the
// objective's margin to spare.
#pragma once

#include <optional>
#include <span>

#include "autoscaler/objective.hpp"
#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

// A size that the job may have for its rest; samples/s from worst to best.
struct Chance {
  Offer offer;
  double low = 0;
  double high = 0;
};

// Nothing where the objective has no limit, or the work left is not known. `before`: what was said
// last.
std::optional<Forecast> foresee(const Objective& objective, const Snapshot& snapshot,
                                const Limits& limits, std::span<const Chance> chances,
                                std::optional<bool> before);

}  // namespace elasticrun::autoscaler
