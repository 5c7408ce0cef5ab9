// The training loss of the epoch so far. Apply adds to it, so it is state like the weights: whoever
// is rank 0 at the end of the epoch has the whole sum.
#pragma once

#include <cstdint>
#include <cstdio>

#include "elasticrun/elasticrun.hpp"

namespace fashion {

struct EpochLoss {
  std::int64_t epoch = 0;
  double sum = 0;
  double samples = 0;

  // In apply, of a step in which compute has summed "loss".
  void add(const elasticrun::Step& step) {
    if (step.epoch() != epoch) *this = {.epoch = step.epoch()};
    sum += step.total("loss");
    samples += static_cast<double>(step.global_batch());
  }
  void print(double accuracy, int workers) const {
    std::printf("epoch %lld: loss %.3f, test accuracy %.1f %%, %d worker%s\n",
                static_cast<long long>(epoch + 1), sum / samples, 100 * accuracy, workers,
                workers == 1 ? "" : "s");
    std::fflush(stdout);
  }
};

}  // namespace fashion
