// Pollux's efficiency, computed by hand.
#include "autoscaler/noise.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace elasticrun::autoscaler;

TEST_CASE("efficiency is the worth of a sample in a larger batch") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  struct Case {
    const char* what;
    double noise_scale, base_batch, batch, efficiency;
  };
  const Case cases[] = {
      {"the base batch", 1000, 128, 128, 1},
      {"twice, far below the noise", 1e6, 128, 256, (1e6 + 128) / (1e6 + 256)},
      {"as large as the noise", 128, 128, 128, 1},
      {"ten times the noise", 100, 100, 1000, 200.0 / 1100},
      {"no noise: only steps count", 0, 64, 256, 0.25},
      {"only noise: only samples count", inf, 64, 1 << 20, 1},
      {"smaller than the base", 100, 100, 50, 200.0 / 150},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(efficiency(c.noise_scale, c.base_batch, c.batch) == doctest::Approx(c.efficiency));
  }
}

TEST_CASE("the noise scale is variance over square, and infinite where square is 0") {
  CHECK(elasticrun::Noise{.square = 4, .variance = 400}.scale() == 100);
  CHECK(elasticrun::Noise{.square = 0, .variance = 400}.scale() ==
        std::numeric_limits<double>::infinity());
}
