// Whether a deadline or a budget can be met, as far as is known.
//
// A user who sets a limit wants to know at once when it cannot be kept, and what would be needed
// (Srift raises such an alarm). While a search is under way the answer is that of the most
// optimistic law: the limit counts as possible as long as some size may meet it. Once the search
// has ended only measured sizes count, each taken as fast as its measurement error allows. So the
// answer starts optimistic and turns to "cannot" once measurements have ruled every size out. It
// turns back only when a size meets the limit with the objective's margin to spare.
#pragma once

#include <optional>
#include <span>

#include "autoscaler/objective.hpp"
#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

// A size that the job may run at for the rest of its work, with the range of its throughput in
// samples/s from worst to best.
struct Chance {
  Offer offer;
  double low = 0;
  double high = 0;
};

// The forecast for the whole job; nothing where the objective has no limit or the work left is not
// known. `before` is Forecast::met of the last forecast, if there was one.
std::optional<Forecast> foresee(const Objective& objective, const Snapshot& snapshot,
                                const Limits& limits, std::span<const Chance> chances,
                                std::optional<bool> before);

}  // namespace elasticrun::autoscaler
