// A training program without a model, which the benchmarks run under elasticrun. It uses only the
// public interface.
//
//     bench_trainer LOG_DIR STEP_US STATE_MB GRADIENT_KB STEPS
//
// Compute sleeps STEP_US for its samples, as a device would compute them. At the end of each apply
// one line goes to LOG_DIR/PID: time of the commit and of the start of the step (CLOCK_MONOTONIC,
// ns), generation, rank, size, step. With LOG_DIR "-" it writes only the median time of a step and
// the processor time of one, in microseconds.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "elasticrun/elasticrun.hpp"

namespace {

using Clock = std::chrono::steady_clock;

long long ns(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// The processor time of all threads of this process together.
double processor_us() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

struct Options {
  std::string log_dir;
  std::chrono::microseconds step{};
  std::size_t state_bytes = 0, gradients = 0;
  std::int64_t steps = 0;
};

Options read_options(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "bench_trainer LOG_DIR STEP_US STATE_MB GRADIENT_KB STEPS\n");
    std::exit(2);
  }
  const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
  return {.log_dir = arguments[1],
          .step = std::chrono::microseconds(number(2)),
          .state_bytes = number(3) * 1'000'000,
          .gradients = number(4) * 1'000 / sizeof(float),
          .steps = static_cast<std::int64_t>(number(5))};
}

// Writes each line with one call, so lines are whole even when the process is killed.
class Log {
 public:
  explicit Log(const std::string& folder) {
    if (folder == "-") return;
    const std::string path = folder + "/" + std::to_string(::getpid());
    file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file_ < 0) std::abort();
  }
  void committed(Clock::time_point begin, const elasticrun::World& world, std::int64_t step) {
    if (file_ < 0) return;
    char line[128];
    const int length =
        std::snprintf(line, sizeof line, "%lld %lld %llu %d %d %lld\n", ns(Clock::now()), ns(begin),
                      static_cast<unsigned long long>(world.generation()), world.rank(),
                      world.size(), static_cast<long long>(step));
    if (::write(file_, line, static_cast<std::size_t>(length)) != length) std::abort();
  }

 private:
  int file_ = -1;
};

}  // namespace

int main(int count, char** arguments) {
  const Options options = read_options(count, arguments);
  std::vector<char> state(options.state_bytes, 1);
  std::vector<float> gradients(options.gradients, 1);
  Log log(options.log_dir);
  std::vector<double> took_us;
  Clock::time_point begin;
  double processor_begin = 0;

  elasticrun::Job job;
  job.state("state", state).gradients("gradients", gradients);
  job.train(
      {.samples = options.steps * 64, .batch = 16},
      [&](elasticrun::Step&) {
        const Clock::time_point now = Clock::now();
        if (took_us.empty()) processor_begin = processor_us();
        took_us.push_back(std::chrono::duration<double, std::micro>(now - begin).count());
        begin = now;
        if (options.step.count() > 0) std::this_thread::sleep_for(options.step);
      },
      [&](elasticrun::Step& step) { log.committed(begin, job.world(), step.number() + 1); });
  if (options.log_dir == "-" && job.world().rank() == 0) {
    const auto middle = took_us.begin() + static_cast<std::ptrdiff_t>(took_us.size() / 2);
    std::nth_element(took_us.begin(), middle, took_us.end());
    const double processor = processor_us() - processor_begin;
    std::printf("%.2f %.2f\n", *middle, processor / static_cast<double>(took_us.size()));
  }
}
