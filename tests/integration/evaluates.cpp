// A program that does something long while nobody steps: before its job, in on_epoch, and after
// each of its two calls of train.
//
//     evaluates FOLDER STEPS STEP_MS
//
// Each call of train makes 2 epochs of STEPS steps of STEP_MS. Where the folder has a file "start",
// "epoch", "after1" or "after2", the program waits at that place until it is gone, and says so. It
// ends with a line "steps N".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "elasticrun/elasticrun.hpp"

namespace {

// The state: its steps are those of all jobs that had it.
struct State {
  double steps = 0;
};

void wait(const std::string& folder, const std::string& place) {
  const std::string file = folder + "/" + place;
  if (::access(file.c_str(), F_OK) != 0) return;
  std::printf("waits at %s\n", place.c_str());
  std::fflush(stdout);
  while (::access(file.c_str(), F_OK) == 0) ::usleep(10'000);
}

void run(const std::string& folder, int steps, int step_ms) {
  wait(folder, "start");
  State state;
  double gradient = 0;
  elasticrun::Job job;
  job.state("state", std::span(&state, 1)).gradients("gradient", std::span(&gradient, 1));
  job.on_epoch([&](const elasticrun::World&) { wait(folder, "epoch"); });
  for (const char* const after : {"after1", "after2"}) {
    job.train(
        {.samples = 8 * steps, .epochs = 2},
        [&](elasticrun::Step&) {
          ::usleep(static_cast<unsigned>(step_ms) * 1000);
          gradient = 1;
        },
        [&](elasticrun::Step&) { state.steps += gradient; });
    wait(folder, after);
  }
  std::printf("steps %.0f\n", state.steps);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("evaluates FOLDER STEPS STEP_MS\n", stderr);
    return 2;
  }
  try {
    run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "evaluates: %s\n", error.what());
    return 1;
  }
}
