// A minimal training program on the C++ header. Outside of elasticrun it trains in a world of one.
#include <elasticrun/elasticrun.hpp>

#include <cstdio>
#include <vector>

int main() {
  std::vector<float> weights(8, 0.0F), grads(8, 0.0F);
  elasticrun::Job job;
  job.state("weights", weights).gradients("grads", grads);
  int steps = 0;
  job.train(
      {.samples = 12, .epochs = 1, .batch = 4},
      [&](elasticrun::Step& step) { grads[0] = static_cast<float>(step.samples().size()); },
      [&](elasticrun::Step&) {
        weights[0] += grads[0];
        ++steps;
      });
  if (weights[0] != 12.0F) return 1;
  std::printf("elasticrun %s: %d worker, %d steps\n", elasticrun_version(), job.world().size(),
              steps);
}
