// See noise.hpp.
#include "autoscaler/noise.hpp"

#include <cmath>

#include "base/check.hpp"

namespace elasticrun::autoscaler {

double efficiency(double noise_scale, double base_batch, double batch) {
  ER_CHECK(noise_scale >= 0 && base_batch > 0 && batch > 0);
  if (std::isinf(noise_scale)) return 1;
  return (noise_scale + base_batch) / (noise_scale + batch);
}

}  // namespace elasticrun::autoscaler
