// Buckets on the GPU are reduced beside the program's stream.
#include <algorithm>

#include "tests/unit/worker/gpu/gpu_ranks.hpp"
#include "worker/training/gradient_reduction.hpp"

using namespace elasticrun;
using namespace elasticrun::worker;
using namespace elasticrun::worker::testing;

namespace {

constexpr std::size_t count = 1000;

// Two gradients on the GPU, whose program works on a stream of its own.
struct Program {
  explicit Program(std::shared_ptr<gpu::Gpu> one)
      : device(std::move(one)), stream(*device), memory(*device) {
    device->use_stream(stream.get());
    table.use_gpu(device);
    first = reinterpret_cast<float*>(memory.reserve(3 * count * sizeof(float)));
    last = first + count;
    elsewhere = last + count;
    REQUIRE(table.add_gradients("first", first, collective::DataType::float32, count).has_value());
    REQUIRE(table.add_gradients("last", last, collective::DataType::float32, count).has_value());
    table.seal();
    reduction.emplace(table, 0);
    reduction->use_buckets(1);
  }
  ~Program() { device->use_stream(nullptr); }

  std::shared_ptr<gpu::Gpu> device;
  gpu::GpuStream stream;
  gpu::GpuBuffer memory;
  float *first = nullptr, *last = nullptr, *elsewhere = nullptr;
  state::StateTable table;
  std::optional<training::Reduction> reduction;
};

}  // namespace

TEST_CASE("a bucket on the GPU is reduced while the program's stream has work, after its mark") {
  const CleanGpu clean;
  run_ranks(2, [&](collective::Group& group) {
    Program program(own_gpu);
    for (int step = 0; step < 3; ++step) {
      const int before = fake_gpu::overlaps();
      program.reduction->begin_step({.calls = 1, .global_samples = 2});
      program.reduction->begin_last_piece(group, &step, 1);
      // Before its gradient is final, the stream is busy, and nothing may be read.
      const auto computed = std::make_shared<std::atomic<bool>>(false);
      const auto done = std::make_shared<std::atomic<bool>>(false);
      fake_gpu::occupy(program.stream.get(), computed);
      float* const lies = step == 1 ? program.elsewhere : program.last;
      const std::size_t number = 1;
      const void* const place = lies;
      CHECK(program.reduction->ready(&step, {&number, 1}, {&place, 1}));
      fake_gpu::occupy(program.stream.get(), done);
      std::fill_n(program.last, count, -1.0f);
      std::fill_n(lies, count, 4.0f + static_cast<float>(group.rank()));
      *computed = true;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (program.last[count - 1] != 4.5f && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
      CHECK(program.last[count - 1] == 4.5f);
      CHECK(fake_gpu::overlaps() > before);
      CHECK(program.reduction->active());
      std::fill_n(program.first, count, static_cast<float>(group.rank()));
      *done = true;
      program.reduction->accumulate(1);
      program.reduction->reduce(group, {});
      own_gpu->wait();
      CHECK(std::count(program.first, program.first + count, 0.5f) == count);
      CHECK(std::count(program.last, program.last + count, 4.5f) == count);
    }
  });
}

TEST_CASE("gradients on the GPU that lie one after the other are reduced as one, if all agree") {
  int collectives[2]{};
  for (const bool join : {false, true}) {
    const CleanGpu clean;
    run_ranks(2, [&](collective::Group& group) {
      gpu::GpuBuffer memory(*own_gpu);
      auto* const last = reinterpret_cast<float*>(memory.reserve(2 * count * sizeof(float)));
      state::StateTable table;
      table.use_gpu(own_gpu);
      for (float* const one : {last + count, last})
        REQUIRE(table
                    .add_gradients(one == last ? "last" : "first", one,
                                   collective::DataType::float32, count)
                    .has_value());
      table.seal();
      training::Reduction reduction(table, 0);
      reduction.use_buckets(1u << 20);
      reduction.join_rows(join);
      std::fill_n(last, 2 * count, static_cast<float>(group.rank()));
      reduction.begin_step({.calls = 1, .global_samples = 2});
      reduction.begin_last_piece(group, &reduction, 1);
      reduction.accumulate(1);
      reduction.reduce(group, {});
      own_gpu->wait();
      CHECK(std::count(last, last + 2 * count, 0.5f) == 2 * count);
    });
    collectives[join] = fake_gpu::count_of("ncclAllReduce");
  }
  CHECK(collectives[true] == collectives[false] - 2);  // one fewer on each of two ranks
}
