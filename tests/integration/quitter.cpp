// A worker that goes away in mid-training in ways that look harmless.
//
//     quitter once|always|leave|finish|stop|fail|differ|poison|crash|hang|linger|
//             evaluate|save|flip|fork|outlive
//
// once: rank 1 exits with 0 inside a step; a file in the working directory makes sure that it
// happens only once. always: every rank 1 does so. leave: rank 1 of three calls leave in a loop of
// its own. finish: the loop ends with finish. stop: the loop ends with leave. fail: every rank
// exits with 3 inside a step. differ: rank 1 registers another state. poison: each worker that
// computes one certain sample aborts. crash: only the first one does. hang: rank 1 hangs for ever
// in the middle of its loop. linger: rank 1 hangs before it calls finish. evaluate: rank 1 hangs in
// on_epoch. save: every rank 0 aborts there. flip: the state of rank 1 changes once by itself.
// fork: each rank forks children in a step and at the end of an epoch, which return from there.
// outlive: each rank finishes, frees its job, and lives for twice --lease 2s. The other ranks
// train. The training itself does nothing useful: these tests need only a world's reduction.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "elasticrun/elasticrun.hpp"

namespace {

constexpr std::int64_t quits_in_step = 5;
constexpr std::int64_t poisoned_sample = 100;

bool is_first() { return ::open("has-quit", O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0; }

bool quits(std::string_view how, const elasticrun::Job& job, const elasticrun::Step& step) {
  if (step.number() < quits_in_step || job.world().rank() != 1) return false;
  return how == "always" || (how == "once" && is_first());
}

bool flips(std::string_view how, const elasticrun::Job& job, const elasticrun::Step& step) {
  return how == "flip" && step.number() == quits_in_step && job.world().rank() == 1 && is_first();
}

// Each rank waits until all have made the mistake, so that none hears of another's before its own.
void fail_with_all(const elasticrun::World& world) {
  static constexpr auto mark = [](int rank) { return "fails-" + std::to_string(rank); };
  ::close(::open(mark(world.rank()).c_str(), O_CREAT | O_WRONLY, 0600));
  for (int rank = 0; rank < world.size(); ++rank)
    while (::access(mark(rank).c_str(), F_OK) != 0) ::usleep(1000);
  std::_Exit(3);
}

bool is_killed(std::string_view how, const elasticrun::Step& step) {
  if (std::ranges::count(step.samples(), poisoned_sample) == 0) return false;
  return how == "poison" || (how == "crash" && is_first());
}

// A child that returns from the function that has called this must end there, with 0.
void fork_and_wait() {
  const pid_t child = ::fork();
  if (child == 0) return;
  int status = -1;
  if (::waitpid(child, &status, 0) != child || status != 0) std::abort();
}

// Rank 1 hangs once, and the others wait for it.
void hang_once(const elasticrun::World& world) {
  if (world.rank() != 1 || !is_first()) return;
  std::puts("hangs");
  std::fflush(stdout);
  for (;;) ::pause();
}

void train(std::string_view how) {
  std::vector<double> weights(100), gradients(100);
  elasticrun::Job job;
  const bool other = how == "differ" && std::getenv("RANK") == std::string_view("1");
  job.state(other ? "momentum" : "weights", weights).gradients("gradients", gradients);
  if (how == "evaluate") job.on_epoch(hang_once);
  if (how == "fork") job.on_epoch([](const elasticrun::World&) { fork_and_wait(); });
  if (how == "save")
    job.on_epoch([](const elasticrun::World& world) {
      if (world.rank() == 0) std::abort();
    });
  job.train(
      {.samples = 240, .epochs = 4, .batch = 12, .seed = 1},
      [&](elasticrun::Step& step) {
        if (quits(how, job, step)) std::_Exit(0);
        if (is_killed(how, step)) std::abort();
        if (how == "fork" && step.number() < quits_in_step) fork_and_wait();
        if (how == "fail" && step.number() == quits_in_step) fail_with_all(job.world());
      },
      [&](elasticrun::Step& step) {
        if (flips(how, job, step)) weights[7] += 1;
        for (double& weight : weights) weight += static_cast<double>(step.number());
      });
}

void loop(std::string_view how) {
  constexpr std::int64_t steps = 40;
  double sum = 0;
  elasticrun::Job job;
  job.state("sum", std::span(&sum, 1));
  job.start();
  while (job.committed() < steps) {
    if (how == "leave" && job.committed() == quits_in_step && job.world().size() == 3 &&
        job.world().rank() == 1)
      return job.leave();
    if (how == "hang" && job.committed() == quits_in_step) hang_once(job.world());
    try {
      double one = 1;
      job.all_reduce(std::span(&one, 1));
      sum += one;
      job.commit();
    } catch (const elasticrun::WorldChanged&) {
    }
  }
  if (how == "linger") hang_once(job.world());
  if (how == "stop")
    job.leave();
  else
    job.finish();
}

// Says so when the silence has been long enough for a worker in training to be given up.
void outlive(std::chrono::seconds lease) {
  loop("finish");
  std::this_thread::sleep_for(2 * lease);
  std::puts("has ended by itself");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 2 ? argv[1] : "";
  constexpr std::string_view known[] = {"once",   "always", "leave", "finish", "stop",   "fail",
                                        "differ", "poison", "crash", "hang",   "linger", "evaluate",
                                        "save",   "flip",   "fork",  "outlive"};
  if (std::ranges::count(known, how) == 0) {
    std::fputs(
        "quitter "
        "once|always|leave|finish|stop|fail|differ|poison|crash|hang|linger|evaluate|save|"
        "flip|fork|outlive\n",
        stderr);
    return 2;
  }
  constexpr std::string_view loops[] = {"leave", "finish", "stop", "hang", "linger"};
  try {
    if (how == "outlive")
      outlive(std::chrono::seconds(2));
    else
      std::ranges::count(loops, how) > 0 ? loop(how) : train(how);
    return 0;
  } catch (const elasticrun::Evicted&) {
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quitter: %s\n", error.what());
    return 1;
  }
}
