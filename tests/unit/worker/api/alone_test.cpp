// The C interface in a world of one: mistakes of a program, and what callbacks see.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "alone.hpp"

namespace elasticrun::alone_test {
namespace {

TEST_CASE("invalid options are refused before anything begins") {
  struct Case {
    const char* part;
    std::function<void(elasticrun_train_options&)> spoil;
  };
  const std::vector<Case> cases{
      {"samples is 0", [](auto& o) { o.samples = 0; }},
      {"samples is -1", [](auto& o) { o.samples = -1; }},
      {"epochs is 0", [](auto& o) { o.epochs = 0; }},
      {"batch is -4", [](auto& o) { o.batch = -4; }},
      {"base_batch is -1", [](auto& o) { o.base_batch = -1; }},
      {"micro_batch is -1", [](auto& o) { o.micro_batch = -1; }},
      {"struct_size is 8", [](auto& o) { o.struct_size = 8; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.part);
    Alone alone;
    c.spoil(alone.options);
    CHECK(alone.train() == ELASTICRUN_MISUSE);
    CHECK(contains(alone.error(), c.part));
    // The program can correct the mistake and try again.
    alone.options = {sizeof(elasticrun_train_options), 10, 1, 4, 0, 0, 5};
    CHECK(alone.train() == ELASTICRUN_OK);
  }
}

TEST_CASE("train without a batch is refused") {
  Alone alone;
  alone.options.batch = 0;
  CHECK(alone.train() == ELASTICRUN_MISUSE);
  CHECK(alone.error() == "train: no batch; give .batch or run under elasticrun --max-batch");
}

TEST_CASE("null pointers are refused and do not crash") {
  Alone alone;
  CHECK(elasticrun_open(nullptr) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_train(alone.job, nullptr, nullptr, nullptr, nullptr) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_state(alone.job, nullptr, alone.weights.data(), 8) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_state(alone.job, "x", nullptr, 8) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_state(nullptr, "x", nullptr, 8) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_commit(nullptr) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_step_sum(nullptr, "x", 1) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_upcoming(alone.job, nullptr, 3) == 0);
  CHECK(elasticrun_rank(nullptr) == 0);
  CHECK(elasticrun_size(nullptr) == 1);
  elasticrun_close(nullptr);
  CHECK(std::string(elasticrun_error(nullptr)) == "out of memory");
}

TEST_CASE("nothing can be registered after the first call of train") {
  Alone alone;
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(elasticrun_state(alone.job, "late", alone.weights.data(), 8) == ELASTICRUN_MISUSE);
  CHECK(contains(alone.error(), "registered after the start"));
}

TEST_CASE("the library must not be called inside its callbacks") {
  Alone alone;
  std::vector<elasticrun_status> found;
  alone.compute = [&](elasticrun_step*) {
    found = {alone.train(), elasticrun_commit(alone.job), elasticrun_leave(alone.job),
             elasticrun_state(alone.job, "x", alone.weights.data(), 8)};
    return 0;
  };
  CHECK(alone.train() == ELASTICRUN_OK);
  CHECK(found == std::vector<elasticrun_status>(4, ELASTICRUN_MISUSE));
  CHECK(contains(alone.error(), "called inside"));
}

TEST_CASE("train and a program's own loop cannot be mixed") {
  Alone trains, loops;
  REQUIRE(trains.train() == ELASTICRUN_OK);
  CHECK(elasticrun_start(trains.job) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_barrier(trains.job) == ELASTICRUN_MISUSE);
  CHECK(contains(trains.error(), "step.sum instead"));
  REQUIRE(elasticrun_start(loops.job) == ELASTICRUN_OK);
  CHECK(loops.train() == ELASTICRUN_MISUSE);
  CHECK(elasticrun_broadcast(loops.job, loops.weights.data(), 8, 1) == ELASTICRUN_MISUSE);
  CHECK(elasticrun_broadcast(loops.job, loops.weights.data(), 8, 0) == ELASTICRUN_OK);
  CHECK(elasticrun_all_reduce(loops.job, loops.weights.data(), ELASTICRUN_FLOAT64, 1) ==
        ELASTICRUN_OK);
  CHECK(elasticrun_commit(loops.job) == ELASTICRUN_OK);
  CHECK(elasticrun_committed(loops.job) == 1);
  CHECK(elasticrun_finish(loops.job) == ELASTICRUN_OK);
  CHECK(elasticrun_commit(loops.job) == ELASTICRUN_MISUSE);
  CHECK(contains(loops.error(), "commit: the loop has finished"));
}

TEST_CASE("finish ends a loop, whatever the last call was") {
  const auto reduce = [](Alone& alone) {
    return elasticrun_all_reduce(alone.job, alone.weights.data(), ELASTICRUN_FLOAT64, 1);
  };
  using Call = std::function<elasticrun_status(Alone&)>;
  const std::vector<std::vector<Call>> loops{
      {},
      {reduce},
      {reduce, [](Alone& alone) { return elasticrun_commit(alone.job); }, reduce},
      {[](Alone& alone) { return elasticrun_barrier(alone.job); }},
  };
  for (const auto& calls : loops) {
    Alone alone;
    REQUIRE(elasticrun_start(alone.job) == ELASTICRUN_OK);
    for (const Call& call : calls) CHECK(call(alone) == ELASTICRUN_OK);
    CHECK(elasticrun_finish(alone.job) == ELASTICRUN_OK);
  }
}

TEST_CASE("a callback that fails ends training") {
  for (const bool in_apply : {false, true}) {
    Alone alone;
    (in_apply ? alone.apply : alone.compute) = [](elasticrun_step* step) {
      return elasticrun_step_number(step) == 1 ? 42 : 0;
    };
    CHECK(alone.train() == ELASTICRUN_CALLBACK);
    CHECK(contains(alone.error(), "returned 42 in step 1"));
    CHECK(elasticrun_committed(alone.job) == 1);
    CHECK(alone.train() == ELASTICRUN_EVICTED);
  }
}

TEST_CASE("a worker that has left cannot train any more") {
  Alone alone;
  CHECK(elasticrun_leave(alone.job) == ELASTICRUN_OK);
  CHECK(alone.train() == ELASTICRUN_EVICTED);
  CHECK(alone.error() == "left by itself");
}

TEST_CASE("steps have numbers, epochs, batches and a learning-rate factor") {
  Alone alone;
  alone.options.epochs = 2;
  alone.options.base_batch = 8;
  std::vector<std::vector<std::int64_t>> seen;
  std::vector<int> in_epoch(10);
  std::vector<std::int64_t> ended;
  alone.compute = [&](elasticrun_step* step) {
    std::size_t count = 0;
    const std::uint64_t* samples = elasticrun_step_samples(step, &count);
    for (std::size_t i = 0; i < count; ++i) ++in_epoch.at(samples[i]);
    CHECK(elasticrun_step_lr_factor(step) == 0.5);
    alone.gradients[0] = static_cast<double>(count);
    return 0;
  };
  alone.apply = [&](elasticrun_step* step) {
    std::size_t count = 0;
    elasticrun_step_samples(step, &count);
    CHECK(static_cast<double>(count) == alone.gradients[0]);
    seen.push_back({elasticrun_step_number(step), elasticrun_step_epoch(step),
                    elasticrun_step_global_batch(step)});
    return 0;
  };
  elasticrun_on_epoch(
      alone.job,
      [](std::int64_t done, void* list) {
        static_cast<std::vector<std::int64_t>*>(list)->push_back(done);
        return 0;
      },
      &ended);
  REQUIRE(alone.train() == ELASTICRUN_OK);
  const std::vector<std::vector<std::int64_t>> expected{{0, 0, 4}, {1, 0, 4}, {2, 0, 2},
                                                        {3, 1, 4}, {4, 1, 4}, {5, 1, 2}};
  CHECK(seen == expected);
  CHECK(in_epoch == std::vector<int>(10, 2));
  CHECK(ended == std::vector<std::int64_t>{1, 2});
  CHECK(elasticrun_size(alone.job) == 1);
  CHECK(elasticrun_generation(alone.job) == 1);
  // The next call may have another batch.
  seen.clear();
  alone.options = {sizeof(elasticrun_train_options), 10, 1, 5, 10, 0, 5};
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(seen == std::vector<std::vector<std::int64_t>>{{6, 0, 5}, {7, 0, 5}});
}

TEST_CASE("upcoming returns the samples that the next calls of compute get") {
  Alone alone;
  alone.options.epochs = 2;
  alone.options.micro_batch = 3;
  std::vector<std::uint64_t> expected, found(20);
  alone.compute = [&](elasticrun_step* step) {
    std::size_t count = 0;
    const std::uint64_t* samples = elasticrun_step_samples(step, &count);
    if (elasticrun_step_number(step) > 0) expected.insert(expected.end(), samples, samples + count);
    return 0;
  };
  alone.apply = [&](elasticrun_step* step) {
    if (elasticrun_step_number(step) == 0)
      found.resize(elasticrun_upcoming(alone.job, found.data(), found.size()));
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(found == expected);
  CHECK(found.size() == 16);
  CHECK(elasticrun_upcoming(alone.job, found.data(), found.size()) == 0);
}

TEST_CASE("upcoming_piece returns what the calls of compute get, to the end of the epoch") {
  Alone alone;
  alone.options.epochs = 2;
  alone.options.micro_batch = 3;
  using Pieces = std::vector<std::vector<std::uint64_t>>;
  std::vector<Pieces> got(2);
  std::vector<std::pair<int, Pieces>> foretold;  // epoch, and the pieces that were to follow
  const auto look_ahead = [&](int epoch) {
    Pieces pieces;
    std::vector<std::uint64_t> piece(8);
    for (std::int64_t count; (count = elasticrun_upcoming_piece(alone.job, pieces.size(),
                                                                piece.data(), piece.size())) >= 0;)
      pieces.emplace_back(piece.begin(), piece.begin() + count);
    foretold.emplace_back(epoch, pieces);
  };
  std::vector<std::size_t> given;  // in the epoch, when it was foretold
  alone.compute = [&](elasticrun_step* step) {
    std::size_t count = 0;
    const std::uint64_t* samples = elasticrun_step_samples(step, &count);
    const auto epoch = static_cast<int>(elasticrun_step_epoch(step));
    got[static_cast<std::size_t>(epoch)].emplace_back(samples, samples + count);
    given.push_back(got[static_cast<std::size_t>(epoch)].size());
    look_ahead(epoch);
    return 0;
  };
  alone.apply = [&](elasticrun_step* step) {
    const auto epoch = static_cast<int>(elasticrun_step_epoch(step));
    given.push_back(got[static_cast<std::size_t>(epoch)].size());
    look_ahead(epoch);
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  REQUIRE(given.size() > 8);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [epoch, pieces] = foretold[i];
    const Pieces& all = got[static_cast<std::size_t>(epoch)];
    CHECK(pieces == Pieces(all.begin() + static_cast<std::ptrdiff_t>(given[i]), all.end()));
  }
  CHECK(elasticrun_upcoming_piece(alone.job, 0, nullptr, 0) == -1);
}

TEST_CASE("several gradients are reported with their places, or refused") {
  Alone alone;
  const double elsewhere = 3;
  alone.compute = [&](elasticrun_step* step) {
    alone.gradients[0] = 8;
    const std::size_t gradients[] = {0, 9};
    const void* const data[] = {&elsewhere, nullptr};
    CHECK(elasticrun_step_ready_at(nullptr, gradients, data, 1) == ELASTICRUN_MISUSE);
    CHECK(elasticrun_step_ready_at(step, nullptr, data, 1) == ELASTICRUN_MISUSE);
    CHECK(elasticrun_step_ready_at(step, gradients, nullptr, 1) == ELASTICRUN_MISUSE);
    CHECK(elasticrun_step_ready_at(step, nullptr, nullptr, 0) == ELASTICRUN_OK);
    CHECK(elasticrun_step_ready_at(step, gradients, data, 2) == ELASTICRUN_MISUSE);  // no 9
    CHECK(elasticrun_step_ready_at(step, gradients, data, 1) == ELASTICRUN_OK);
    return 0;
  };
  std::vector<double> found;
  alone.apply = [&](elasticrun_step*) {
    found.push_back(alone.gradients[0]);
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(found == std::vector<double>(found.size(), elsewhere));
}

TEST_CASE("a report for a piece that is over does nothing in the next one") {
  Alone alone;
  alone.options.micro_batch = 3;
  const double elsewhere = 7;
  elasticrun_step* before = nullptr;
  int late = 0;
  alone.compute = [&](elasticrun_step* step) {
    alone.gradients[0] = 2;
    const std::size_t gradient = 0;
    const void* const data = &elsewhere;
    if (before) {
      CHECK(elasticrun_step_ready_at(before, &gradient, &data, 1) == ELASTICRUN_OK);
      ++late;
    }
    before = step;
    return 0;
  };
  alone.apply = [&](elasticrun_step*) {
    CHECK(alone.gradients[0] == 2);
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(late == 4);
}

TEST_CASE("figures: sums over calls of compute, their limits, and where they may be used") {
  Alone alone;
  alone.options.micro_batch = 2;
  alone.compute = [&](elasticrun_step* step) {
    CHECK(elasticrun_step_sum(step, "a", 1) == ELASTICRUN_OK);
    for (int i = 1; i < 32; ++i)
      CHECK(elasticrun_step_sum(step, std::to_string(i).c_str(), i) == ELASTICRUN_OK);
    CHECK(elasticrun_step_sum(step, "one too many", 1) == ELASTICRUN_MISUSE);
    CHECK(elasticrun_step_sum(step, "", 1) == ELASTICRUN_MISUSE);
    CHECK(elasticrun_step_sum(step, nullptr, 1) == ELASTICRUN_MISUSE);
    return 0;
  };
  std::vector<double> totals;
  alone.apply = [&](elasticrun_step* step) {
    totals.push_back(elasticrun_step_total(step, "a"));
    CHECK(elasticrun_step_total(step, "31") == 31 * totals.back());
    CHECK(elasticrun_step_total(step, "never") == 0);
    CHECK(elasticrun_step_sum(step, "a", 1) == ELASTICRUN_MISUSE);
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(totals == std::vector<double>{2, 2, 1});
}

TEST_CASE("buffers: compute finds the committed values in every call") {
  Alone alone;
  alone.options.micro_batch = 2;
  double running = 1;
  REQUIRE(elasticrun_buffers(alone.job, "b", &running, ELASTICRUN_FLOAT64, 1) == ELASTICRUN_OK);
  std::vector<double> found, after;
  alone.compute = [&](elasticrun_step*) {
    found.push_back(running);
    running *= 2;
    return 0;
  };
  alone.apply = [&](elasticrun_step*) {
    after.push_back(running);
    return 0;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(found == std::vector<double>{1, 1, 2, 2, 4});
  CHECK(after == std::vector<double>{2, 4, 8});
}

TEST_CASE("open fails with a message when no agent listens at the given socket") {
  ::setenv("ELASTICRUN_SOCKET", "/nonexistent/agent.sock", 1);
  for (const char* worker : {"", "x", "-1", "3"}) {
    ::setenv("ELASTICRUN_WORKER", worker, 1);
    elasticrun_job* job = nullptr;
    CHECK(elasticrun_open(&job) == ELASTICRUN_FAILED);
    REQUIRE(job != nullptr);
    const std::string text = elasticrun_error(job);
    CHECK(contains(text,
                   worker == std::string("3") ? "/nonexistent/agent.sock" : "ELASTICRUN_WORKER"));
    CHECK(elasticrun_start(job) == ELASTICRUN_FAILED);
    elasticrun_close(job);
  }
  ::unsetenv("ELASTICRUN_SOCKET");
  ::unsetenv("ELASTICRUN_WORKER");
}

TEST_CASE("a forked child cannot use the job, but may close it") {
  Alone alone;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = alone.train() == ELASTICRUN_MISUSE;
    elasticrun_close(alone.job);
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(alone.train() == ELASTICRUN_OK);
}

}  // namespace
}  // namespace elasticrun::alone_test
