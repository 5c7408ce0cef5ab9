// What the library costs in each step apart from the collectives: the training thread's time from
// one call of compute to the next, less what it spends inside the group.
//
// The library is the real one (session, train loop, reduction, Gloo). Only the controller is
// simulated, as for a world that never changes, and a stopwatch wraps the group. Subtracting a loop
// of bare all-reduces instead would not do: on two cores their times differ by more than the cost
// to be measured.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

#include "tests/bench/one_world.hpp"
#include "tests/unit/worker/ranks.hpp"
#include "worker/training/train_loop.hpp"

using namespace elasticrun::worker::state;
using namespace elasticrun::worker::control;
using namespace elasticrun;
using namespace elasticrun::worker::core;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::training;
using namespace elasticrun::bench;
using Clock = std::chrono::steady_clock;

namespace {

class Stopwatch final : public Group {
 public:
  explicit Stopwatch(Group& group) : group_(group) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::string publish() override { return {}; }
  void connect(const std::vector<std::string>&) override {}
  std::string formation() const override { return group_.formation(); }
  void abort() noexcept override { group_.abort(); }
  void close() noexcept override {}
  void all_reduce(void* data, DataType type, std::size_t count) override {
    const Clock::time_point begin = Clock::now();
    group_.all_reduce(data, type, count);
    inside += Clock::now() - begin;
  }
  void all_reduce_each(std::span<const Row> rows) override {
    const Clock::time_point begin = Clock::now();
    group_.all_reduce_each(rows);
    inside += Clock::now() - begin;
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    group_.broadcast(data, bytes, root);
  }
  void barrier() override { group_.barrier(); }
  std::unique_ptr<Pending> post_send(int to, const void* data, std::size_t bytes,
                                     std::uint32_t tag) override {
    return group_.post_send(to, data, bytes, tag);
  }
  std::unique_ptr<Pending> post_recv(int from, void* data, std::size_t bytes,
                                     std::uint32_t tag) override {
    return group_.post_recv(from, data, bytes, tag);
  }

  Clock::duration inside{};

 private:
  Group& group_;
};

// Collects times in the callbacks of the steps.
struct Times {
  const Stopwatch& group;
  Clock::time_point last{};
  Clock::duration last_inside{};
  std::vector<double> cost_us, collective_us;

  void begun() {
    const Clock::time_point now = Clock::now();
    const Clock::duration inside = group.inside - last_inside;
    if (last != Clock::time_point{}) {
      cost_us.push_back(std::chrono::duration<double, std::micro>(now - last - inside).count());
      collective_us.push_back(std::chrono::duration<double, std::micro>(inside).count());
    }
    last_inside = group.inside;
    last = Clock::now();
  }
};

int on_compute(elasticrun_step* step, void* times) {
  static_cast<Times*>(times)->begun();
  step->sums.add("loss", 1);
  return 0;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Case {
  std::size_t tensors, elements;
  std::int64_t batch, steps;
};

void run(Group& bare, const Case& c, bool noise) {
  const auto [tensors, elements, batch, steps_wanted] = c;
  std::vector<std::vector<float>> gradients(tensors, std::vector<float>(elements, 1));
  std::vector<float> weights(tensors * elements);
  StateTable table;
  bool registered =
      table.add_state("weights", weights.data(), weights.size() * sizeof(float)).has_value();
  for (std::size_t i = 0; i < tensors; ++i)
    registered &=
        table.add_gradients(std::to_string(i), gradients[i].data(), DataType::float32, elements)
            .has_value();
  if (!registered) std::abort();
  table.seal();

  Stopwatch group(bare);
  OneWorld channel(group, world_of(bare.size(), batch, noise));
  StepMeter meter;
  MemberLock member_lock(WorkerId(static_cast<std::uint32_t>(bare.rank()) + 1));
  member_lock.attach(channel);
  WorldSession session(member_lock, channel, meter, table);
  worker::training::Steps steps(session);
  Times times{.group = group};
  elasticrun_train_options options{};
  options.struct_size = sizeof options;
  options.samples = steps_wanted * batch;
  options.epochs = 1;
  options.batch = batch / bare.size();
  worker::training::train(
      steps, options,
      {.compute = on_compute, .apply = [](elasticrun_step*, void*) { return 0; }, .user = &times});
  if (bare.rank() == 0)
    fmt::print("{} {} {} {} {:d} {:.2f} {:.2f} {:.2f}\n", bare.size(), tensors, elements, batch,
               noise, quantile(times.cost_us, 0.5), quantile(times.cost_us, 0.99),
               quantile(times.collective_us, 0.5));
}

}  // namespace

//     bench_step_cost [MOST_STEPS]
//
// Prints lines of: workers, tensors, elements of each, global batch, whether the gradients' noise
// is measured; median cost, 99th percentile, median of the collectives, in microseconds.
int main(int count, char** arguments) {
  const std::int64_t most = count > 1 ? std::atoll(arguments[1]) : 4'000;
  for (const int size : {1, 2})
    for (Case c : {Case{1, 16, 8, 4'000}, Case{8, 128, 64, 4'000}, Case{64, 1024, 256, 4'000},
                   Case{4, 1 << 20, 256, 200}})
      for (const bool noise : {false, true}) {
        c.steps = std::min(c.steps, most);
        worker::testing::run_ranks(size, [&](Group& group) { run(group, c, noise); });
      }
}
