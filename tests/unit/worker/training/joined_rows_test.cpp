// Gradients that lie one after the other in memory on some workers, and on others do not.
#include <doctest/doctest.h>

#include <numeric>

#include "tests/unit/worker/ranks.hpp"
#include "tests/unit/worker/training/share.hpp"
#include "worker/training/gradient_reduction.hpp"

using namespace elasticrun::worker::state;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::training;
using namespace elasticrun::worker::testing;

namespace {

constexpr std::size_t counts[] = {25'000, 30'000, 26'000, 3};
constexpr std::size_t number = std::size(counts);

// For each gradient from the last to the first, as buckets take them: the elements between it and
// the one before.
using Gaps = std::array<std::size_t, number>;
constexpr Gaps one_piece{}, one_gap{0, 0, 5, 0}, gaps_between{1, 5, 5, 3};

struct Laid {
  explicit Laid(const Gaps& gaps, std::size_t bucket_bytes) {
    if (own_gpu) table.use_gpu(own_gpu);
    std::array<float*, number> data{};
    float* at = memory.data();
    for (std::size_t i = number; i-- > 0; at += counts[i]) data[i] = at += gaps[number - 1 - i];
    for (std::size_t i = 0; i < number; ++i) {
      gradients[i] = {data[i], counts[i]};
      REQUIRE(table.add_gradients(std::to_string(i), data[i], DataType::float32, counts[i])
                  .has_value());
    }
    table.seal();
    reduction = std::make_unique<Reduction>(table, 1);
    reduction->use_buckets(bucket_bytes);
    std::ranges::fill(memory, 99.0f);  // between them nothing is touched
  }
  // The gradients of one sample.
  void compute(int sample) {
    if (own_gpu) own_gpu->wait();
    for (std::size_t i = 0; i < number; ++i)
      std::ranges::fill(gradients[i], static_cast<float>(sample * 10) + static_cast<float>(i));
  }
  void check(double mean) {
    if (own_gpu) own_gpu->wait();
    std::size_t others = memory.size();
    for (std::size_t i = 0; i < number; ++i) {
      others -= counts[i];
      const float expected = static_cast<float>(mean * 10 + static_cast<double>(i));
      CHECK(gradients[i].front() == doctest::Approx(expected));
      CHECK(std::ranges::count(gradients[i], gradients[i].front()) == std::ptrdiff_t(counts[i]));
    }
    CHECK(std::ranges::count(memory, 99.0f) == std::ptrdiff_t(others));
  }
  Numbers<float> memory{std::reduce(std::begin(counts), std::end(counts)) + 20};
  std::array<std::span<float>, number> gradients;
  StateTable table;
  std::unique_ptr<Reduction> reduction;
};

struct Trainee {
  const Gaps* gaps;
  int calls;
};

void check_steps(const std::vector<Trainee>& ranks, std::size_t bucket_bytes, bool join) {
  int samples = 0;
  for (const Trainee& rank : ranks) samples += rank.calls;
  run_ranks(static_cast<int>(ranks.size()), [&](Group& group) {
    const auto [gaps, calls] = ranks[static_cast<std::size_t>(group.rank())];
    Laid worker(*gaps, bucket_bytes);
    worker.reduction->join_rows(join);
    for (int step = 0; step < 2; ++step) {
      worker.compute(500);  // must not count in an empty share
      const std::vector<int> pieces(static_cast<std::size_t>(calls), 1);
      compute_share(*worker.reduction, group, &step, pieces, samples, [&](std::size_t call) {
        worker.compute(group.rank() + static_cast<int>(call));
        worker.reduction->ready(&step, std::vector<std::size_t>{3, 2, 0});
      });
      std::vector<double> extras{1};
      worker.reduction->reduce(group, extras);
      CHECK(extras[0] == group.size());
      double sum = 0;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (int call = 0; call < ranks[rank].calls; ++call) sum += double(rank) + call;
      worker.check(sum / samples);
    }
  });
}

}  // namespace

TEST_CASE("the mean is the same wherever each worker has its gradients") {
  for (const std::size_t bucket_bytes :
       {std::size_t{0}, std::size_t{150'000}, std::size_t{1} << 20}) {
    CAPTURE(bucket_bytes);
    for (const std::vector<Trainee>& ranks : std::vector<std::vector<Trainee>>{
             {{&one_piece, 1}, {&gaps_between, 1}},
             {{&one_piece, 2}, {&one_gap, 1}},
             {{&gaps_between, 3}, {&one_piece, 1}},
             {{&one_gap, 0}, {&one_piece, 2}},
             {{&one_piece, 1}, {&gaps_between, 2}, {&one_gap, 0}},
             {{&one_piece, 2}},
         })
      check_steps(ranks, bucket_bytes, false);
  }
}

TEST_CASE("the same where all have them alike, and they are reduced as one") {
  for (const std::size_t bucket_bytes :
       {std::size_t{0}, std::size_t{150'000}, std::size_t{1} << 20})
    for (const Gaps* gaps : {&one_piece, &one_gap, &gaps_between}) {
      CAPTURE(bucket_bytes);
      check_steps({{gaps, 1}, {gaps, 1}}, bucket_bytes, true);
      check_steps({{gaps, 2}, {gaps, 0}, {gaps, 1}}, bucket_bytes, true);
      check_steps({{gaps, 2}}, bucket_bytes, true);
    }
}

TEST_CASE("workers that have their gradients in other ways say so") {
  run_ranks(1, [](Group&) {
    const auto joints = [](const Gaps& gaps) { return Laid(gaps, 1u << 20).reduction->joints(); };
    const Gaps wider{2, 0, 5, 0};
    CHECK(joints(one_piece) == joints(one_piece));
    CHECK(joints(wider) == joints(one_gap));
    CHECK((joints(one_piece) != joints(gaps_between)) ==
          (own_gpu != nullptr));  // on the host they are one row
  });
}
