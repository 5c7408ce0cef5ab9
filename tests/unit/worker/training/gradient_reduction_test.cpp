// The mean over the global batch, whatever the shares and pieces are.
#include "worker/training/gradient_reduction.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/unit/worker/ranks.hpp"
#include "tests/unit/worker/training/share.hpp"

using namespace elasticrun::worker::state;
using namespace elasticrun::worker::core;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::training;
using namespace elasticrun::worker::testing;

namespace {

// A worker with a small and a large gradient, and a buffer.
template <class T>
struct Worker {
  static constexpr std::size_t large = (1u << 20) / sizeof(T) + 5;
  explicit Worker(std::size_t extras) {
    if (own_gpu) table.use_gpu(own_gpu);
    const DataType type = sizeof(T) == 4 ? DataType::float32 : DataType::float64;
    REQUIRE(table.add_gradients("bias", bias.data(), type, bias.size()).has_value());
    REQUIRE(table.add_gradients("matrix", matrix.data(), type, matrix.size()).has_value());
    REQUIRE(table.add_gradients("none", nullptr, type, 0).has_value());
    REQUIRE(table.add_buffers("mean", mean.data(), type, mean.size()).has_value());
    table.seal();
    reduction = std::make_unique<Reduction>(table, extras);
  }
  // Writes the result of compute for the samples [first, first + n): the mean of their numbers.
  void compute(int first, int n) {
    if (own_gpu) own_gpu->wait();
    const T value = static_cast<T>(first) + static_cast<T>(n - 1) / 2;
    std::fill(bias.begin(), bias.end(), value);
    std::fill(matrix.begin(), matrix.end(), 2 * value);
    std::fill(mean.begin(), mean.end(), -value);
  }
  // Says that the matrix is ready, and of the others no word.
  void ready(const void* step) { CHECK(reduction->ready(step, 1)); }
  // The same of matrix and bias, with the matrix elsewhere.
  void ready_elsewhere(const void* step) {
    std::copy(matrix.begin(), matrix.end(), elsewhere.begin());
    std::fill(matrix.begin(), matrix.end(), static_cast<T>(-77));  // is not read
    const std::size_t gradients[] = {1, 0};
    const void* const data[] = {elsewhere.data(), nullptr};
    CHECK(reduction->ready(step, gradients, data));
  }
  void check(double expected) const {
    for (const T x : bias) CHECK(x == doctest::Approx(expected));
    std::size_t wrong = 0;
    for (const T x : matrix) wrong += x != matrix.front();
    CHECK(wrong == 0);
    CHECK(matrix.front() == doctest::Approx(2 * expected));
    for (const T x : mean) CHECK(x == doctest::Approx(-expected));
  }
  Numbers<T> bias{3}, matrix{large}, mean{2}, elsewhere{large};
  StateTable table;
  std::unique_ptr<Reduction> reduction;
};

struct Case {
  const char* name;
  // The sizes of each rank's calls of compute.
  std::vector<std::vector<int>> calls;
};

template <class T>
void check_cases(std::size_t bucket_bytes, auto ready) {
  const Case cases[] = {
      {"equal shares", {{4}, {4}, {4}}},    {"unequal shares", {{5}, {1}, {2}}},
      {"an empty share", {{4}, {}, {3}}},   {"several calls", {{2, 2, 1}, {3}, {1, 1}}},
      {"one sample in all", {{}, {1}, {}}}, {"alone", {{4}}},
      {"alone in pieces", {{3, 3, 1}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    run_ranks(static_cast<int>(c.calls.size()), [&](Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      int first = 0, total = 0;
      for (std::size_t r = 0; r < c.calls.size(); ++r)
        for (const int n : c.calls[r]) {
          if (r < rank) first += n;
          total += n;
        }
      Worker<T> worker(4);
      worker.reduction->use_buckets(bucket_bytes);
      for (int step = 0; step < 3; ++step) {  // nothing of a step may leak into the next one
        worker.compute(1000, 7);              // must not count in an empty share
        int at = first;
        compute_share(*worker.reduction, group, &step, c.calls[rank], total, [&](std::size_t call) {
          worker.compute(at, c.calls[rank][call]);
          (worker.*ready)(&step);
          at += c.calls[rank][call];
        });
        std::vector<double> extras{1.0, static_cast<double>(group.rank()), step + 0.5};
        worker.reduction->reduce(group, extras);
        CHECK_FALSE(worker.reduction->active());
        worker.check((total - 1) / 2.0);
        CHECK(std::ranges::count(worker.reduction->is_set(), 1) == 3);
        CHECK(extras[0] == group.size());
        CHECK(extras[1] == group.size() * (group.size() - 1) / 2);
        CHECK(extras[2] == group.size() * (step + 0.5));
      }
    });
  }
}

}  // namespace

TEST_CASE("the mean over the global batch, whatever the shares: float32") {
  check_cases<float>(0, &Worker<float>::ready);
}
TEST_CASE("the mean over the global batch, whatever the shares: float64") {
  check_cases<double>(0, &Worker<double>::ready);
}
TEST_CASE("the same in buckets") {
  check_cases<float>(1, &Worker<float>::ready);            // of one tensor each
  check_cases<double>(64u << 20, &Worker<double>::ready);  // of all of them
}
TEST_CASE("the same where a gradient is not in its own place") {
  check_cases<float>(0, &Worker<float>::ready_elsewhere);
  check_cases<float>(1, &Worker<float>::ready_elsewhere);
  check_cases<double>(64u << 20, &Worker<double>::ready_elsewhere);
}

TEST_CASE(
    "a gradient that nobody has set is zero and said to be unset; one that some have is not") {
  for (const std::size_t bucket_bytes : {0u, 1u, 64u << 20})
    run_ranks(3, [&](Group& group) {
      Worker<float> worker(1);
      worker.reduction->use_buckets(bucket_bytes);
      // Two pieces on rank 0, none on rank 2. The matrix is never set, the bias in one piece.
      const std::vector<int> calls(static_cast<std::size_t>(2 - group.rank()), 1);
      for (int step = 0; step < 2; ++step) {
        compute_share(*worker.reduction, group, &step, calls, 3, [&](std::size_t call) {
          worker.compute(6, 1);
          const auto report = [&](std::size_t gradient, bool is_set) {
            CHECK(is_set ? worker.reduction->ready(&step, gradient)
                         : worker.reduction->unset(&step, gradient));
          };
          report(1, step != 0);
          report(0, group.rank() == 0 && call == 0);
        });
        std::vector<double> extras{1};
        worker.reduction->reduce(group, extras);
        if (own_gpu) own_gpu->wait();
        CHECK(extras[0] == 3);
        CHECK(worker.bias[0] == doctest::Approx(2));  // one of three samples
        CHECK(worker.matrix[7] == doctest::Approx(step == 0 ? 0 : 12));
        const auto set = worker.reduction->is_set();
        CHECK(std::vector<int>(set.begin(), set.end()) == std::vector<int>{1, step, 1});
      }
    });
}

TEST_CASE("a worker that was alone, with buckets of another size, is one of two") {
  if (own_gpu) return;  // each rank has its own
  Worker<float> workers[2]{Worker<float>(1), Worker<float>(1)};
  const auto step = [&](Group& group) {
    Worker<float>& worker = workers[group.rank()];
    worker.reduction->begin_step({.calls = 1, .global_samples = double(group.size())});
    worker.reduction->begin_last_piece(group, &group, 1);
    worker.compute(group.rank(), 1);
    worker.reduction->accumulate(1);
    std::vector<double> extras{1};
    worker.reduction->reduce(group, extras);
    CHECK(extras[0] == group.size());
    worker.check((group.size() - 1) / 2.0);
  };
  for (Worker<float>& worker : workers) worker.reduction->use_buckets(1u << 20);
  run_ranks(1, step);
  for (Worker<float>& worker : workers) worker.reduction->use_buckets(2u << 20);
  run_ranks(2, step);
}

TEST_CASE("a single worker with one call gets its gradients back bit by bit") {
  run_ranks(1, [](Group& group) {
    Worker<float> worker(0);
    for (std::size_t i = 0; i < worker.bias.size(); ++i) worker.bias[i] = 1.0f / (3 + float(i));
    for (std::size_t i = 0; i < worker.matrix.size(); ++i) worker.matrix[i] = 1.0f / (7 + float(i));
    const auto bias = worker.bias.copy();
    const auto matrix = worker.matrix.copy();
    worker.reduction->begin_step({.calls = 1, .global_samples = 7});
    worker.reduction->accumulate(7);
    worker.reduction->reduce(group, {});
    CHECK(worker.bias.copy() == bias);
    CHECK(worker.matrix.copy() == matrix);
  });
}

namespace {

struct Piece {
  double bias, matrix;
  int samples;
};

// One worker's part of a step; the gradients of each piece are all equal.
template <class T>
void step(Worker<T>& worker, Group& group, const std::vector<Piece>& pieces, int samples,
          bool elsewhere = false) {
  worker.reduction->begin_step(
      {.calls = pieces.size(), .global_samples = double(samples), .measured = true});
  for (const Piece& piece : pieces) {
    if (own_gpu) own_gpu->wait();
    std::fill(worker.bias.begin(), worker.bias.end(), static_cast<T>(piece.bias));
    std::fill(worker.matrix.begin(), worker.matrix.end(), static_cast<T>(piece.matrix));
    std::fill(worker.mean.begin(), worker.mean.end(), T{1000});  // a buffer, so it does not count
    worker.reduction->begin_piece(&piece);
    if (elsewhere) {
      worker.ready_elsewhere(&piece);
    } else if (piece.matrix == 0) {  // whatever the memory holds
      std::fill(worker.matrix.begin(), worker.matrix.end(), T{77});
      CHECK(worker.reduction->unset(&piece, 1));
    }
    worker.reduction->accumulate(piece.samples);
  }
  worker.reduction->reduce(group, {});
}

template <class T>
double square(double bias, double matrix) {
  return 3 * bias * bias + static_cast<double>(Worker<T>::large) * matrix * matrix;
}

template <class T>
void check_squares() {
  // Rank 0 has two pieces, rank 1 one, and rank 2 none. The mean over all samples is 2.25 and
  // -0.28125.
  run_ranks(3, [](Group& group) {
    const std::vector<std::vector<Piece>> shares{{{1, 0.5, 3}, {-1, 0.25, 1}}, {{4, -1, 4}}, {}};
    Worker<T> worker(0);
    for (const bool elsewhere : {false, true}) {
      step(worker, group, shares[static_cast<std::size_t>(group.rank())], 8, elsewhere);
      const GradientSquares found = worker.reduction->squares();
      CHECK(found.pieces == 3);
      CHECK(found.samples == 8);
      CHECK_FALSE(found.biased);
      CHECK(found.local ==
            doctest::Approx((3 * square<T>(1, 0.5) + square<T>(-1, 0.25) + 4 * square<T>(4, -1)) /
                            8));
      CHECK(found.total == doctest::Approx(square<T>(2.25, -0.28125)));
    }
    const std::vector<std::vector<Piece>> unset{{{1, 0, 3}, {-1, 0, 1}}, {{4, 0, 4}}, {}};
    step(worker, group, unset[static_cast<std::size_t>(group.rank())], 8);
    CHECK(worker.reduction->squares().local ==
          doctest::Approx((3 * square<T>(1, 0) + square<T>(-1, 0) + 4 * square<T>(4, 0)) / 8));
  });
}

}  // namespace

TEST_CASE("squares of the pieces and of the mean are measured") {
  check_squares<float>();
  check_squares<double>();
}

TEST_CASE("a single worker with one call measures each step together with the one before") {
  run_ranks(1, [](Group& group) {
    Worker<double> worker(0);
    const auto measured = [&](double bias, double matrix, int samples) {
      step(worker, group, {{bias, matrix, samples}}, samples);
      return worker.reduction->squares();
    };
    CHECK(measured(1, 0, 6).pieces == 1);
    const GradientSquares pair = measured(-2, 0.5, 2);
    CHECK(pair.pieces == 2);
    CHECK(pair.samples == 8);
    CHECK(pair.biased);
    CHECK(pair.local ==
          doctest::Approx((6 * square<double>(1, 0) + 2 * square<double>(-2, 0.5)) / 8));
    CHECK(pair.total == doctest::Approx(square<double>(0.25, 0.125)));
    // A step that was discarded or not measured does not count as the step before.
    worker.reduction->discard();
    CHECK(measured(1, 0, 6).pieces == 1);
    worker.reduction->begin_step({.calls = 1, .global_samples = 6});
    worker.reduction->accumulate(6);
    worker.reduction->reduce(group, {});
    CHECK(measured(1, 0, 6).pieces == 1);
    // Two calls are two pieces of one step.
    step(worker, group, {{1, 0, 3}, {3, 0, 3}}, 6);
    CHECK_FALSE(worker.reduction->squares().biased);
    CHECK(worker.reduction->squares().total == doctest::Approx(square<double>(2, 0)));
    CHECK(measured(1, 0, 6).pieces == 1);
  });
}

TEST_CASE("measuring changes no bit of the result") {
  run_ranks(2, [](Group& group) {
    std::vector<std::vector<float>> results;
    for (const bool measured : {false, true}) {
      Worker<float> worker(0);
      const auto fill = [&](std::span<float> values, float seed) {
        if (own_gpu) own_gpu->wait();
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = seed / (3 + static_cast<float>(i));
      };
      worker.reduction->begin_step({.calls = 2, .global_samples = 13, .measured = measured});
      for (const int n : {3, group.rank() == 0 ? 2 : 5}) {
        fill(worker.bias, static_cast<float>(n + group.rank()));
        fill(worker.matrix, static_cast<float>(2 * n + group.rank()));
        worker.reduction->accumulate(n);
      }
      worker.reduction->reduce(group, {});
      results.push_back(worker.bias.copy());
      results.push_back(worker.matrix.copy());
    }
    CHECK(results[0] == results[2]);
    CHECK(results[1] == results[3]);
  });
}

TEST_CASE("numbers are reduced without gradients, in float64") {
  run_ranks(3, [](Group& group) {
    StateTable table;
    table.seal();
    Reduction reduction(table, 2);
    reduction.begin_step({.calls = 1, .global_samples = 10});
    reduction.accumulate(3);
    std::vector<double> extras{1e15 + group.rank(), 0.25};
    reduction.reduce(group, extras);
    CHECK(extras[0] == 3e15 + 3);
    CHECK(extras[1] == 0.75);
  });
}
