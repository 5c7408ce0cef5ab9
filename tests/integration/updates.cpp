// A loop of its own that counts its updates in its state: there must be as many as committed steps,
// at every moment and whatever happens. It is careless where the manual allows it: it changes the
// state before, between and after its collectives, and undoes nothing.
//
//     updates ENOUGH [SAMPLE_US [uncounted]]
//
// ENOUGH is a file: when it exists, the next step is the last one. SAMPLE_US: the time for each of
// the 24 samples of a step. uncounted: the program does not report samples. Each worker ends with a
// line "committed C updates U samples S"; a worker whose updates are not its committed
// steps exits with 9.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "elasticrun/elasticrun.hpp"

namespace {

constexpr std::int64_t batch = 24;

struct State {
  std::int64_t updates = 0;
  double samples = 0;
  double enough = 0;
  std::array<double, 4096> ballast{};  // copying it takes time, in which a worker may be killed
};

void check(const elasticrun::Job& job, const State& state, const char* where) {
  const auto updates = static_cast<long long>(state.updates);
  const auto committed = static_cast<long long>(job.committed());
  if (updates == committed && state.ballast.back() == static_cast<double>(updates)) return;
  std::fprintf(stderr, "updates: %lld updates in %lld committed steps, %s\n", updates, committed,
               where);
  std::exit(9);
}

void step(elasticrun::Job& job, State& state, const char* enough, int sample_us, bool counted) {
  ++state.updates;
  const int rank = job.world().rank(), size = job.world().size();
  std::int64_t mine = 0;
  for (std::int64_t sample = rank; sample < batch; sample += size) ++mine;
  if (sample_us > 0) ::usleep(static_cast<unsigned>(mine) * static_cast<unsigned>(sample_us));
  state.enough = rank == 0 && ::access(enough, F_OK) == 0 ? 1 : 0;
  job.all_reduce(state.enough);
  state.ballast.fill(static_cast<double>(state.updates));
  double samples = static_cast<double>(mine);
  job.all_reduce(samples);
  state.samples += samples;
  if (counted) job.samples(mine);
  job.commit();
  check(job, state, "behind a commit");
}

void run(const char* enough, int sample_us, bool counted) {
  State state;
  elasticrun::Job job;
  job.state("state", std::span(&state, 1));
  job.start();
  for (bool finished = false; !finished;) {
    try {
      check(job, state, "before a step");
      if (state.enough == 0) {
        step(job, state, enough, sample_us, counted);
      } else {
        auto all = static_cast<double>(state.updates);
        job.all_reduce(all);
        if (all != static_cast<double>(job.world().size() * state.updates)) std::exit(9);
        job.finish();
        finished = true;
      }
    } catch (const elasticrun::WorldChanged&) {
      // The step that committed() names is done again.
    }
  }
  check(job, state, "at the end");
  std::printf("committed %lld updates %lld samples %.0f\n", static_cast<long long>(job.committed()),
              static_cast<long long>(state.updates), state.samples);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fputs("updates ENOUGH [SAMPLE_US [uncounted]]\n", stderr);
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0,
        argc < 4 || argv[3] != std::string_view("uncounted"));
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "updates: %s\n", error.what());
    return 1;
  }
}
