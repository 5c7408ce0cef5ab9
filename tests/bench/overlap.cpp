// Whether gradients are reduced while others are computed: the time of a step in which both take
// equally long, in buckets and without, between two workers.
//
// Computing is waiting here, as it is for a program whose GPU computes, so it takes no processor
// from the reduction. The library is the real one; only the controller is simulated.
//
//     bench_overlap [STEPS]       prints: megabytes, and in ms: reduction, compute, step without
//                                 buckets, step with them
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

constexpr std::size_t tensors = 40;

double ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// The median time of a step, in ms, on rank 0.
double step_time(std::size_t bytes, Clock::duration compute, std::int64_t bucket_bytes,
                 std::int64_t steps) {
  double median = 0;
  testing::run_ranks(2, [&](collective::Group& group) {
    const std::size_t elements = bytes / tensors / sizeof(float);
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
    bench::OneWorld channel(group, bench::world_of(2, 8, false));
    control::StepMeter meter;
    control::MemberLock member_lock(WorkerId(static_cast<std::uint32_t>(group.rank()) + 1));
    member_lock.attach(channel);
    control::WorldSession session(member_lock, channel, meter, table);
    training::Steps loop(session);
    elasticrun_train_options options{};
    options.struct_size = sizeof options;
    options.samples = steps * 8;
    options.epochs = 1;
    options.batch = 4;
    options.bucket_bytes = bucket_bytes;
    std::vector<double> took;
    Clock::time_point begin = Clock::now();
    loop.begin(options, "");
    while (loop.next() == training::Steps::Next::piece) {
      Clock::time_point at = Clock::now();
      for (std::size_t i = tensors; i-- > 0;) {
        at += compute / tensors;
        std::this_thread::sleep_until(at);
        elasticrun_step& step = loop.step();
        step.reduction->ready(&step, i, true);
      }
      if (!loop.reduce()) std::abort();
      loop.commit();
      took.push_back(ms(Clock::now() - begin));
      begin = Clock::now();
    }
    loop.end();
    if (group.rank() != 0) return;
    std::ranges::sort(took);
    median = took[took.size() / 2];
  });
  return median;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 40;
  for (const std::size_t megabytes : {10, 100}) {
    const std::size_t bytes = megabytes << 20;
    const double reduction = step_time(bytes, {}, 0, steps);
    const auto compute = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(reduction));
    const auto bucket = static_cast<std::int64_t>(std::max<std::size_t>(bytes / 30, 800u << 10));
    fmt::print("{} {:.2f} {:.2f} {:.2f} {:.2f}\n", megabytes, reduction, ms(compute),
               step_time(bytes, compute, 0, steps), step_time(bytes, compute, bucket, steps));
  }
}
