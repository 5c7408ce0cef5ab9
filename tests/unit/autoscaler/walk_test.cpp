// The published walk reproduces the published traces.
#include "autoscaler/walk.hpp"

#include <doctest/doctest.h>

#include <map>

#include "fake_job.hpp"

using namespace elasticrun;
using namespace elasticrun::autoscaler;
using namespace std::chrono_literals;

namespace {

// Total seconds of jobs that ran at one size (Or et al. 2020); throughput is their inverse.
const std::map<int, double> cifar10{{4, 1172},  {8, 1216},  {12, 1305},
                                    {16, 1303}, {20, 1410}, {24, 1408}};
const std::map<int, double> imagenet{{32, 4550}, {40, 3638}, {48, 3070}, {56, 2742}, {64, 2357}};

FakeJob job(const std::map<int, double>& total, int start, double noise = 0,
            std::uint64_t seed = 1) {
  Options options;
  options.policy = "throughput-walk";
  for (const auto& [size, s] : total) options.limits.sizes.push_back(size);
  options.limits.min = options.limits.sizes.front();
  options.limits.max = options.limits.sizes.back();
  options.limits.settle = 0s;  // the paper has no settling time
  return {Autoscaler::make(std::move(options)).value(),
          [&total](int size) { return 5e6 / total.at(size); }, start, noise, seed};
}

}  // namespace

TEST_CASE("the walk takes the paths of the paper") {
  struct Case {
    const std::map<int, double>& total;
    int start;
    const char* path;
  };
  const Case cases[] = {{cifar10, 4, "8 4"},
                        {cifar10, 12, "16 8 4 8 4"},
                        {cifar10, 24, "20 16 12 8 4 8 4"},
                        {imagenet, 32, "40 48 56 64"},
                        // These are not in the paper, but follow from the same rules.
                        {cifar10, 8, "12 4 8 4"},
                        {imagenet, 56, "64"},
                        {imagenet, 64, "56 64"}};
  for (const Case& c : cases) {
    CAPTURE(c.start);
    FakeJob walking = job(c.total, c.start);
    walking.run(10min);
    CHECK(walking.path() == c.path);
  }
}

TEST_CASE("the walk gives its reasons") {
  FakeJob walking = job(cifar10, 4);
  walking.run(5min);
  const std::vector<std::string> expected{
      "measuring 4 over 10 steps",
      "all 0 pairs measured pass: on to 8",
      "measuring 8 over 10 steps",
      "4 -> 8 workers: -0.04 of a full worker's worth, not more than 0.10: 100 steps at 8 to be "
      "sure",
      "4 -> 8 workers: -0.04 of a full worker's worth, not more than 0.10: 4 it is",
      "settled at 4"};
  CHECK(walking.reasons == expected);
}

TEST_CASE("averages never age: a size that was slow once stays slow") {
  FakeJob walking = job(imagenet, 32);
  walking.curve = [&](int size) {
    return 5e6 / imagenet.at(size) * (size == 40 && walking.now < Time{} + 20s ? 0.3 : 1);
  };
  walking.run(10min);
  CHECK(walking.size == 32);
}
