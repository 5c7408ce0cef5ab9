// What a plain program says about its progress, and when that is reported.
#include "launcher/agent/workers/progress_meter.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace elasticrun::launcher::agent::workers {
namespace {

using namespace std::chrono_literals;

TEST_CASE("steps are counted from line to line and reported once an interval") {
  ProgressMeter meter(WorkerId(3), 500ms);
  const Time start{100s};
  CHECK_FALSE(meter.hear("samples=8\n", start));
  CHECK_FALSE(meter.hear("samples=8\n", start + 200ms));
  CHECK_FALSE(meter.hear("samples=16\nsamples=16\n", start + 400ms));
  const auto first = meter.hear("samples=8\n", start + 600ms);
  REQUIRE(first);
  CHECK(first->worker == WorkerId(3));
  CHECK(first->steps == 4);
  CHECK(first->samples == 48);
  CHECK(first->wall_ns == 600'000'000);
  CHECK_FALSE(meter.hear("samples=8\n", start + 1000ms));
  const auto second = meter.hear("samples=8\n", start + 1100ms);
  REQUIRE(second);
  CHECK(second->steps == 2);
  CHECK(second->samples == 16);
  CHECK(second->wall_ns == 500'000'000);
}

TEST_CASE("a line may say more, and what makes no sense counts for nothing") {
  const struct {
    const char* line;
    std::int64_t samples;  // -1: no step
  } cases[] = {
      {"samples=7\n", 7},
      {"epoch=1 samples=7 loss=0.3\n", 7},
      {"samples=0\n", 0},
      {"\n", -1},
      {"samples=\n", -1},
      {"samples=-1\n", -1},
      {"samples=seven\n", -1},
      {"samples=99999999999999999999\n", -1},
      {"samples=2199023255552\n", -1},
      {"resamples=7\n", -1},
  };
  for (const auto& c : cases) {
    CAPTURE(c.line);
    ProgressMeter meter(WorkerId(1), 0ms);
    CHECK_FALSE(meter.hear("samples=1\n", Time{1s}));
    const auto report = meter.hear(c.line, Time{2s});
    CHECK(report.has_value() == (c.samples >= 0));
    if (report) CHECK(report->samples == c.samples);
  }
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
