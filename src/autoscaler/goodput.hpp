// The objective of Pollux (Qiao et al., OSDI 2021): not samples count, but what training learns
// from them.
//
//     goodput(k, M) = throughput(k, M) * efficiency(M)     k workers with a global batch of M
//
// A larger size mostly has a larger batch, and beyond the noise scale each of its samples brings
// less (noise.hpp). Throughput alone does not see that: it takes every size that computes more
// samples for a better one. Here the worth of a size is `scaling`'s, of the goodput, and the batch
// is chosen with it: from the base batch, M0, to the most that the user's rule allows that size. So
// a batch per worker is never more than what was named as efficient, and nothing is accumulated for
// it.
//
// While little is known of the noise it is `scaling`, and says so: a search at the begin of a job
// is one for throughput, and what is measured in it is judged again when the noise is known.
#pragma once

#include <memory>

#include "autoscaler/objective.hpp"

namespace elasticrun::autoscaler {

std::unique_ptr<Objective> goodput();

}  // namespace elasticrun::autoscaler
