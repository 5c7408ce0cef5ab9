// The mean over the global batch, whatever the types of the gradients are.
#include <doctest/doctest.h>

#include <limits>

#include "tests/unit/worker/ranks.hpp"
#include "worker/training/gradient_reduction.hpp"

using namespace elasticrun::worker::state;
using namespace elasticrun::worker::core;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::training;
using namespace elasticrun::worker::testing;

namespace {

// A gradient of each type and size, and buffers that are integers.
struct Mixed {
  static constexpr std::size_t large = (1u << 20) / 2 + 3;
  Mixed() {
    if (own_gpu) table.use_gpu(own_gpu);
    const auto add = [&](const char* name, auto& numbers, DataType type) {
      REQUIRE(table.add_gradients(name, numbers.data(), type, numbers.size()).has_value());
    };
    add("f32", f32, DataType::float32);
    add("f64", f64, DataType::float64);
    add("bf16", bf16, DataType::bfloat16);
    add("large bf16", large_bf16, DataType::bfloat16);
    add("large f16", large_f16, DataType::float16);
    add("large f32", large_f32, DataType::float32);
    REQUIRE(table.add_buffers("seen", seen.data(), DataType::int64, seen.size()).has_value());
    REQUIRE(table.add_buffers("used", used.data(), DataType::int32, 1).has_value());
    table.seal();
    reduction = std::make_unique<Reduction>(table, 3);
  }
  void fill(double x) {
    if (own_gpu) own_gpu->wait();
    const auto single = static_cast<float>(x);
    std::fill(f32.begin(), f32.end(), single);
    std::fill(f64.begin(), f64.end(), x);
    std::fill(bf16.begin(), bf16.end(), to_bfloat16(single));
    std::fill(large_bf16.begin(), large_bf16.end(), to_bfloat16(single));
    std::fill(large_f16.begin(), large_f16.end(), to_float16(single));
    std::fill(large_f32.begin(), large_f32.end(), single);
  }
  void check(double x, double narrow) const {
    CHECK(f32[1] == doctest::Approx(x).epsilon(1e-6));
    CHECK(f64[2] == doctest::Approx(x).epsilon(1e-12));
    CHECK(widened(bf16[0]) == doctest::Approx(x).epsilon(narrow));
    CHECK(widened(large_bf16[large - 1]) == doctest::Approx(x).epsilon(narrow));
    CHECK(widened(large_f16[large - 1]) == doctest::Approx(x).epsilon(narrow / 8));
    CHECK(large_f32[large - 1] == doctest::Approx(x).epsilon(1e-6));
  }
  Numbers<float> f32{4}, large_f32{large};
  Numbers<double> f64{3};
  Numbers<Bfloat16> bf16{5}, large_bf16{large};
  Numbers<Float16> large_f16{large};
  Numbers<std::int64_t> seen{3};
  Numbers<std::int32_t> used{1};
  StateTable table;
  std::unique_ptr<Reduction> reduction;
};

}  // namespace

TEST_CASE("gradients of several types, in one job") {
  for (const std::size_t bucket_bytes : {0u, 1u, 64u << 20})
    run_ranks(3, [&](Group& group) {
      Mixed worker;
      worker.reduction->use_buckets(bucket_bytes);
      // The first rank has no samples, and the others two and one calls of compute.
      const std::vector<std::vector<double>> calls{{}, {1, 2}, {6}};
      const auto& own = calls[static_cast<std::size_t>(group.rank())];
      for (int step = 0; step < 2; ++step) {
        worker.reduction->begin_step(
            {.calls = own.size(), .global_samples = 4, .leads = group.rank() == 1});
        worker.fill(1000);
        if (own.empty()) worker.reduction->begin_last_piece(group, &step, 0);
        for (const double x : own) {
          if (x == own.back())
            worker.reduction->begin_last_piece(group, &step, own.size() == 1 ? 2 : 1);
          else
            worker.reduction->begin_piece(&step);
          worker.fill(x);
          const auto number = static_cast<std::int64_t>(x);
          worker.seen[0] = (std::int64_t{1} << 53) + 1 + 2 * number;
          worker.seen[1] = std::numeric_limits<std::int64_t>::max() - number;
          worker.seen[2] = std::numeric_limits<std::int64_t>::min() + number;
          worker.used[0] = -static_cast<std::int32_t>(x);
          worker.reduction->accumulate(own.size() == 1 ? 2 : 1);
        }
        std::vector<double> extras{301};  // 256 + 45: 16 bits would lose it
        worker.reduction->reduce(group, extras);
        if (own_gpu) own_gpu->wait();
        worker.check((1 + 2 + 2 * 6) / 4.0, 1.0 / 128);
        CHECK(extras[0] == 903);
        CHECK(worker.seen[0] == (std::int64_t{1} << 53) + 5);
        CHECK(worker.seen[1] == std::numeric_limits<std::int64_t>::max() - 2);
        CHECK(worker.seen[2] == std::numeric_limits<std::int64_t>::min() + 2);
        CHECK(worker.used[0] == -2);
      }
    });
}

TEST_CASE("numbers of 16 bits are added up without rounding in between, on the host") {
  if (own_gpu) return;
  // In bfloat16 256 + 1 is 256.
  run_ranks(3, [](Group& group) {
    StateTable table;
    std::vector<Bfloat16> gradient(Mixed::large);
    REQUIRE(
        table.add_gradients("g", gradient.data(), DataType::bfloat16, gradient.size()).has_value());
    table.seal();
    Reduction reduction(table, 0);
    reduction.begin_step({.calls = 1, .global_samples = 1, .leads = group.rank() == 0});
    std::fill(gradient.begin(), gradient.end(), to_bfloat16(group.rank() == 0 ? 256 : 1));
    reduction.accumulate(1);
    reduction.reduce(group, {});
    CHECK(widened(gradient[7]) == 258);
  });
}
