// Whether gradients are reduced while others are computed: the time of a step in which both take
// equally long, in buckets and without, between two workers.
//
// Computing is waiting here, as it is for a program whose GPU computes, so it takes no processor
// from the reduction. The library is the real one; only the controller is simulated.
//
//     bench_overlap [STEPS]       STEPS: with 100 MB. Prints: megabytes, and in ms: reduction,
//                                 compute, step without buckets, step with them; then "cost", the
//                                 number of workers, of gradients, of buckets, and us of a training
//                                 thread's processor in a step: of a worker alone all, of two all
//                                 but reduce(), which waits
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/one_world.hpp"
#include "tests/unit/worker/ranks.hpp"
#include "worker/training/train_loop.hpp"

using namespace elasticrun;
using namespace elasticrun::worker;
using Clock = std::chrono::steady_clock;

namespace {

// Of the calling thread.
double processor_us() {
  timespec at{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e6 + static_cast<double>(at.tv_nsec) / 1e3;
}

// What the clock itself adds between two looks at it.
double clock_us() {
  std::vector<double> costs(1000);
  for (double& cost : costs) {
    const double before = processor_us();
    cost = processor_us() - before;
  }
  std::ranges::nth_element(costs, costs.begin() + 500);
  return costs[500];
}

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct Program {
  int workers = 2;
  std::size_t tensors = 0, bytes = 0;
  std::int64_t bucket_bytes = 0;
  Clock::duration compute{};
};

struct Step {
  double ms = 0;
  double processor_us = 0;          // of the training thread
  double outside_reduction_us = 0;  // the same, without reduce()
};

// The medians of a step, on rank 0.
Step step_of(const Program& program, std::int64_t steps) {
  Step median;
  const std::size_t tensors = program.tensors;
  testing::run_ranks(program.workers, [&](collective::Group& group) {
    const std::size_t elements = program.bytes / tensors / sizeof(float);
    std::vector<std::vector<float>> gradients(tensors, std::vector<float>(elements, 1));
    double weight = 0;
    state::StateTable table;
    bool registered = table.add_state("weight", &weight, sizeof weight).has_value();
    for (std::size_t i = 0; i < tensors; ++i)
      registered &= table
                        .add_gradients(std::to_string(i), gradients[i].data(),
                                       collective::DataType::float32, elements)
                        .has_value();
    if (!registered) std::abort();
    table.seal();
    bench::OneWorld channel(group, bench::world_of(program.workers, 8, false));
    control::StepMeter meter;
    control::MemberLock member_lock(WorkerId(static_cast<std::uint32_t>(group.rank()) + 1));
    member_lock.attach(channel);
    control::WorldSession session(member_lock, channel, meter, table);
    training::Steps loop(session);
    elasticrun_train_options options{};
    options.struct_size = sizeof options;
    options.samples = steps * 8;
    options.epochs = 1;
    options.batch = 8 / program.workers;
    options.bucket_bytes = program.bucket_bytes;
    std::vector<double> took, used, used_outside;
    const double clock = clock_us();
    const Clock::duration of_tensor = program.compute / tensors;
    Clock::time_point begin = Clock::now();
    double before = processor_us();
    loop.begin(options, "");
    while (loop.next() == training::Steps::Next::piece) {
      Clock::time_point at = Clock::now();
      for (std::size_t i = tensors; i-- > 0;) {
        at += of_tensor;
        if (of_tensor > Clock::duration::zero()) std::this_thread::sleep_until(at);
        elasticrun_step& step = loop.step();
        step.reduction->ready(&step, i);
      }
      const double reduction = processor_us();
      if (!loop.reduce()) std::abort();
      const double reduced = processor_us();
      loop.commit();
      took.push_back(ms(Clock::now() - begin));
      const double all = processor_us() - before;
      used.push_back(all - 3 * clock);
      used_outside.push_back(all - (reduced - reduction) - 2 * clock);
      begin = Clock::now();
      before = processor_us();
    }
    loop.end();
    if (group.rank() != 0) return;
    const auto median_of = [](std::vector<double>& values) {
      std::ranges::sort(values);
      return values[values.size() / 2];
    };
    median = {median_of(took), median_of(used), median_of(used_outside)};
  });
  return median;
}

constexpr std::size_t tensors = 40;

double step_time(std::size_t bytes, Clock::duration compute, std::int64_t bucket_bytes,
                 std::int64_t steps) {
  const Program program{
      .tensors = tensors, .bytes = bytes, .bucket_bytes = bucket_bytes, .compute = compute};
  return step_of(program, steps).ms;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t long_steps = argc > 1 ? std::atoll(argv[1]) : 40;
  for (const std::size_t megabytes : {10, 100}) {
    // The first dozens of short steps are slower: the threads still look for their processors.
    const std::int64_t steps = megabytes == 10 ? 4 * long_steps : long_steps;
    const std::size_t bytes = megabytes << 20;
    const double reduction = step_time(bytes, {}, 0, steps);
    const auto compute = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(reduction));
    const auto bucket = static_cast<std::int64_t>(bytes / tensors);  // the last is not hidden
    fmt::print("{} {:.2f} {:.2f} {:.2f} {:.2f}\n", megabytes, reduction, ms(compute),
               step_time(bytes, compute, 0, steps), step_time(bytes, compute, bucket, steps));
  }
  constexpr std::size_t gradients = 150, bytes = gradients * 64 * sizeof(float);
  for (const int workers : {1, 2})
    for (const std::size_t buckets : {0, 1, 6}) {
      const auto bucket = static_cast<std::int64_t>(buckets == 0 ? 0 : bytes / buckets * 2);
      const Program program{
          .workers = workers, .tensors = gradients, .bytes = bytes, .bucket_bytes = bucket};
      const Step step = step_of(program, 20 * long_steps);
      fmt::print("cost {} {} {} {:.2f}\n", workers, gradients, buckets,
                 workers == 1 ? step.processor_us : step.outside_reduction_us);
    }
}
