// The objective of Pollux (Qiao et al., OSDI 2021): it counts what training learns from the samples
// instead of the samples themselves.
//
//     goodput(k, M) = throughput(k, M) * efficiency(M)     k workers with a global batch of M
//
// A larger size mostly has a larger batch, and beyond the noise scale each sample of such a batch
// contributes less (noise.hpp). Throughput alone does not see that: it prefers every size that
// computes more samples. Here the worth of a size is that of `scaling`, applied to the goodput, and
// the batch is chosen along with the size: between the base batch, M0, and the largest that the
// user's rule allows at that size. So the batch per worker never exceeds what the user named as
// efficient, and no gradient accumulation is needed for it.
//
// While little is known of the noise this objective is `scaling`, and its text says so: the first
// search of a job is for throughput, and its measurements are judged again once the noise is known.
#pragma once

#include <memory>

#include "autoscaler/objective.hpp"

namespace elasticrun::autoscaler {

std::unique_ptr<Objective> goodput();

}  // namespace elasticrun::autoscaler
