// A program with a mistake that would train on and end with wrong weights.
//
//     mistaken stateless|gradientless|resized|compute|sums|newcomer|calls|caller|right
//
// stateless, gradientless: it registers no state, or no gradients. resized: a vector grows after
// its registration. compute: compute changes the weights. sums: rank 1 names its figures in another
// order. newcomer: rank 1 is killed, and the worker in its place has other epochs; the one before
// waits for it. calls: in a loop of its own, rank 1 sums floats in step 2 where the others sum as
// many bytes of doubles. caller: as newcomer, in a loop of its own, and the worker in the place of
// rank 1 makes one more call in each step. right: no mistake.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "elasticrun/elasticrun.hpp"

namespace {

bool exists(const char* file) { return ::access(file, F_OK) == 0; }
void create(const char* file) { std::fclose(std::fopen(file, "w")); }

void change_workers(const elasticrun::Job& job, std::int64_t step) {
  if (step == 5 && job.world().rank() == 1 && !exists("killed")) {
    create("killed");
    std::raise(SIGKILL);
  }
  while (step > 5 && !exists("came")) ::usleep(1000);
  ::usleep(50'000);
}

void train(std::string_view how) {
  const bool comes_later = how == "newcomer" && exists("killed");
  if (comes_later) create("came");
  std::vector<double> weights(100), gradients(100);
  elasticrun::Job job;
  if (how != "stateless") job.state("weights", weights);
  if (how != "gradientless") job.gradients("gradients", gradients);
  if (how == "resized") weights.resize(200);
  job.train(
      {.samples = 240, .epochs = comes_later ? 3 : 2, .batch = 12, .seed = 1},
      [&](elasticrun::Step& step) {
        const bool other = how == "sums" && job.world().rank() == 1;
        step.sum(other ? "hits" : "loss", 1);
        step.sum(other ? "loss" : "hits", 2);
        if (how == "newcomer") change_workers(job, step.number());
        if (how == "compute") weights[99] += 1;
      },
      [&](elasticrun::Step&) { weights[0] += gradients[0]; });
}

void own_loop(std::string_view how) {
  const bool comes_later = how == "caller" && exists("killed");
  if (comes_later) create("came");
  std::vector<double> weights(300), gradients(300);
  elasticrun::Job job;
  job.state("weights", weights);
  job.start();
  while (job.committed() < 40) {
    try {
      const std::span all(gradients);
      if (how == "calls" && job.committed() == 2 && job.world().rank() == 1)
        job.all_reduce(std::span(reinterpret_cast<float*>(all.data()), 2 * all.size()));
      else
        job.all_reduce(all);
      if (comes_later) job.all_reduce(all.first(0));
      if (how == "caller") change_workers(job, job.committed());
      weights[0] += gradients[0];
      job.commit();
    } catch (const elasticrun::WorldChanged&) {  // the step begins again
    }
  }
  job.finish();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string_view how = argc == 2 ? argv[1] : "";
    how.starts_with("call") ? own_loop(how) : train(how);
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mistaken: %s\n", error.what());
    return 1;
  }
}
