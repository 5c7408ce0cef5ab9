// Training as a loop of the program, alone: the order of the calls; and options of other versions.
#include <cstddef>

#include "alone.hpp"

namespace elasticrun::alone_test {
namespace {

TEST_CASE("calls of a loop of steps out of turn are refused, and change nothing") {
  Alone alone;
  elasticrun_step* step = nullptr;
  CHECK(elasticrun_next(alone.job, &step) == ELASTICRUN_MISUSE);
  CHECK(alone.error() == "next: call begin first");
  CHECK(elasticrun_begin(alone.job, nullptr) == ELASTICRUN_MISUSE);
  CHECK(alone.error() == "begin: no options (null)");
  alone.options = {sizeof(elasticrun_train_options), 10, 1, 6, 0, 2, 5};  // in pieces of 2
  REQUIRE(elasticrun_begin(alone.job, &alone.options) == ELASTICRUN_OK);
  CHECK(elasticrun_begin(alone.job, &alone.options) == ELASTICRUN_MISUSE);
  CHECK(alone.train() == ELASTICRUN_MISUSE);
  CHECK(elasticrun_reduce(alone.job) == ELASTICRUN_MISUSE);
  CHECK(alone.error() == "reduce: no step is under way; call next first");
  CHECK(elasticrun_commit(alone.job) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_next(alone.job, nullptr) == ELASTICRUN_MISUSE);
  int steps = 0, pieces = 0, ends = 0;
  while (elasticrun_next(alone.job, &step) == ELASTICRUN_OK && step) {
    if (elasticrun_step_epochs_done(step) > 0) {
      ++ends;
      continue;
    }
    ++pieces;
    std::size_t count = 0;
    elasticrun_step_samples(step, &count);
    CHECK(count == 2);
    alone.gradients[0] = 1;
    if (!elasticrun_step_last_piece(step)) {
      CHECK(elasticrun_reduce(alone.job) == ELASTICRUN_MISUSE);
      CHECK(alone.error() == "reduce: the step has another piece; call next first");
      continue;
    }
    CHECK(elasticrun_commit(alone.job) == ELASTICRUN_MISUSE);
    elasticrun_step* other = nullptr;
    CHECK(elasticrun_next(alone.job, &other) == ELASTICRUN_MISUSE);
    CHECK(other == nullptr);
    REQUIRE(elasticrun_reduce(alone.job) == ELASTICRUN_OK);
    CHECK(alone.gradients[0] == doctest::Approx(1));
    CHECK(elasticrun_next(alone.job, &other) == ELASTICRUN_MISUSE);
    CHECK(alone.error() == "next: the step is reduced; apply and commit it first");
    alone.weights[0] += alone.gradients[0];
    REQUIRE(elasticrun_commit(alone.job) == ELASTICRUN_OK);
    ++steps;
  }
  CHECK(steps == 2);
  CHECK(pieces == 5);
  CHECK(ends == 1);
  CHECK(alone.weights[0] == doctest::Approx(2));
  CHECK(elasticrun_next(alone.job, &step) == ELASTICRUN_MISUSE);
  CHECK(alone.train() == ELASTICRUN_OK);  // the next call of train, either way
}

TEST_CASE("the end of an epoch as a step, and where a program enters before it knows its options") {
  Alone alone;
  std::int64_t epoch = -1;
  CHECK(elasticrun_enter(alone.job, nullptr, nullptr) == ELASTICRUN_MISUSE);
  REQUIRE(elasticrun_enter(alone.job, nullptr, &epoch) == ELASTICRUN_OK);
  CHECK(epoch == 0);
  CHECK(elasticrun_size(alone.job) == 1);
  alone.options = {sizeof(elasticrun_train_options), 10, 2, 6};
  alone.options.epoch_steps = 1;
  REQUIRE(elasticrun_begin(alone.job, &alone.options) == ELASTICRUN_OK);
  CHECK(elasticrun_enter(alone.job, nullptr, &epoch) == ELASTICRUN_MISUSE);
  std::string course;
  elasticrun_step* step = nullptr;
  while (elasticrun_next(alone.job, &step) == ELASTICRUN_OK && step) {
    const bool end = elasticrun_step_epochs_done(step) > 0;
    if (end && course.back() == 's' && course.size() < 3) {  // told again: nothing was reduced
      course += '?';
      continue;
    }
    std::size_t count = 0;
    elasticrun_step_samples(step, &count);
    CHECK((count == 0) == end);
    alone.weights[0] += end ? 1 : 0;  // allowed there
    double figure = 7;
    const auto sum = [&] {
      return elasticrun_all_reduce(alone.job, &figure, ELASTICRUN_FLOAT64, 1);
    };
    CHECK(sum() == (end ? ELASTICRUN_OK : ELASTICRUN_MISUSE));
    CHECK(elasticrun_barrier(alone.job) == (end ? ELASTICRUN_OK : ELASTICRUN_MISUSE));
    CHECK(figure == 7);
    REQUIRE(elasticrun_reduce(alone.job) == ELASTICRUN_OK);
    CHECK(sum() == ELASTICRUN_MISUSE);
    REQUIRE(elasticrun_commit(alone.job) == ELASTICRUN_OK);
    course += end ? 'e' : 's';
  }
  CHECK(course == "ss?esse");
  CHECK(elasticrun_committed(alone.job) == 6);
  REQUIRE(elasticrun_enter(alone.job, &alone.options, &epoch) == ELASTICRUN_OK);
  CHECK(epoch == 0);  // of the next call
  CHECK(alone.train() == ELASTICRUN_OK);
}

TEST_CASE("a loop of steps finds registered state that compute has changed") {
  Alone alone;
  elasticrun_step* step = nullptr;
  REQUIRE(elasticrun_begin(alone.job, &alone.options) == ELASTICRUN_OK);
  REQUIRE(elasticrun_next(alone.job, &step) == ELASTICRUN_OK);
  alone.weights[0] = 1;
  CHECK(elasticrun_reduce(alone.job) == ELASTICRUN_MISUSE);
  CHECK(contains(alone.error(), "compute has changed the registered state 'w'"));
  CHECK(elasticrun_next(alone.job, &step) == ELASTICRUN_MISUSE);
  CHECK(step == nullptr);
}

TEST_CASE("options of an older and of a newer interface are taken") {
  Alone alone;
  alone.options.micro_batch = -7;  // beyond the struct of a program that knows no micro_batch
  alone.options.struct_size = offsetof(elasticrun_train_options, micro_batch);
  CHECK(alone.train() == ELASTICRUN_OK);
  struct {
    elasticrun_train_options known;
    std::int64_t unknown = 0;
  } newer{{sizeof newer, 10, 1, 4, 0, 0, 5}};
  newer.known.struct_size = sizeof newer;
  const auto train = [&] {
    const auto nothing = [](elasticrun_step*, void*) { return 0; };
    return elasticrun_train(alone.job, &newer.known, nothing, nothing, nullptr);
  };
  CHECK(train() == ELASTICRUN_OK);
  newer.unknown = 1;
  CHECK(train() == ELASTICRUN_MISUSE);
  CHECK(contains(alone.error(), "of a newer version of the library than"));
}

}  // namespace
}  // namespace elasticrun::alone_test
