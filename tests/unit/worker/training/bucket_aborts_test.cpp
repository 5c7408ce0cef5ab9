// Steps in buckets that are cut short at any point, with reports from four threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/worker/ranks.hpp"
#include "worker/training/gradient_reduction.hpp"

using namespace elasticrun::worker;
using namespace elasticrun::worker::testing;
using namespace elasticrun::worker::training;

namespace {

constexpr std::size_t threads = 4, of_each = 4, count = 20'000;

struct Program {
  Program() {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i].resize(count, 1);
      REQUIRE(table
                  .add_gradients(std::to_string(i), gradients[i].data(),
                                 collective::DataType::float32, count)
                  .has_value());
    }
    table.seal();
    reduction.emplace(table, 0);
    reduction->use_buckets(2 * count * sizeof(float));
  }
  void fill(float x) {
    for (auto& gradient : gradients) std::ranges::fill(gradient, x);
  }
  bool holds(float x) const {
    return std::ranges::all_of(gradients, [x](const auto& gradient) {
      return std::ranges::all_of(gradient, [x](float y) { return x == y; });
    });
  }

  std::array<std::vector<float>, threads * of_each> gradients;
  state::StateTable table;
  std::optional<Reduction> reduction;
};

// False: the step was cut short.
bool take_step(Program& program, collective::Group& group, const int& step) {
  program.fill(2);
  program.reduction->begin_step({.calls = 1, .global_samples = 2});
  program.reduction->begin_last_piece(group, &step, 1);
  std::vector<std::thread> hooks;
  for (std::size_t first = 0; first < threads; ++first)
    hooks.emplace_back([&, first] {
      for (std::size_t i = 0; i < of_each; ++i) {
        const std::size_t gradient = (i + 1) * threads - 1 - first;
        const void* const place = program.gradients[gradient].data();
        CHECK((i == 0 ? program.reduction->ready(&step, {&gradient, 1}, {&place, 1})
                      : program.reduction->ready(&step, gradient)));
      }
    });
  bool happens = true;
  try {
    program.reduction->accumulate(1);
    program.reduction->reduce(group, {});
  } catch (const collective::GroupBroken&) {
    group.abort();
    program.reduction->cancel();
    happens = false;
  }
  if (!happens) program.fill(-7);  // the program's again, though the hooks may still report
  for (std::thread& hook : hooks) hook.join();
  return happens;
}

}  // namespace

TEST_CASE(
    "an abort at any point ends a step in buckets, and leaves the memory alone from then on") {
  int cut_short = 0;
  for (int point = 0; point < 60; ++point)
    run_ranks(2, [&](collective::Group& group) {
      Program program;
      // Rank 1 loses its group later in each round; it may be between two steps then.
      std::thread abort([&] {
        if (group.rank() == 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100 * point));
        group.abort();
      });
      std::array<int, 50> steps{};
      std::size_t done = 0;
      while (done < steps.size() && take_step(program, group, steps[done])) {
        CHECK(program.holds(2));
        ++done;
      }
      abort.join();
      if (done == steps.size()) return;
      if (group.rank() == 1) ++cut_short;
      CHECK(program.reduction->ready(&steps[done], 3));
      CHECK_FALSE(program.reduction->active());
      CHECK(program.holds(-7));
    });
  CHECK(cut_short > 30);
}
