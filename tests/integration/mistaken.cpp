// A program with a mistake that would train on and end with wrong weights.
//
//     mistaken stateless|gradientless|resized|compute|sums|right
//
// stateless, gradientless: it registers no state, or no gradients. resized: a vector grows after
// its registration. compute: compute changes the weights. sums: rank 1 names its figures in another
// order. right: no mistake.
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "elasticrun/elasticrun.hpp"

namespace {

void train(std::string_view how) {
  std::vector<double> weights(100), gradients(100);
  elasticrun::Job job;
  if (how != "stateless") job.state("weights", weights);
  if (how != "gradientless") job.gradients("gradients", gradients);
  if (how == "resized") weights.resize(200);
  job.train(
      {.samples = 240, .epochs = 2, .batch = 12, .seed = 1},
      [&](elasticrun::Step& step) {
        const bool other = how == "sums" && job.world().rank() == 1;
        step.sum(other ? "hits" : "loss", 1);
        step.sum(other ? "loss" : "hits", 2);
        if (how == "compute") weights[99] += 1;
      },
      [&](elasticrun::Step&) { weights[0] += gradients[0]; });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc == 2 ? argv[1] : "");
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mistaken: %s\n", error.what());
    return 1;
  }
}
