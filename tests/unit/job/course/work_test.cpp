// The samples that are left to do, counted by hand.
#include "job/core/course/work.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::course;

namespace {

wire::TrainSpec train(std::int64_t call, std::int64_t samples, std::int64_t epochs) {
  return {.call = call, .samples = samples, .epochs = epochs};
}

}  // namespace

TEST_CASE("work: the last step of an epoch is smaller") {
  Work work;
  work.asked(train(1, 100, 3));
  CHECK_FALSE(work.left());  // the size of a step is not known yet
  CHECK_FALSE(work.may_be_between_epochs());
  work.world_changed(StepId(0), 30);
  struct Case {
    std::int64_t step;
    std::int64_t left;
  };
  for (const Case c : {Case{0, 300},
                       {1, 270},
                       {3, 210},
                       {4, 200},
                       {5, 170},
                       {8, 100},
                       {11, 10},
                       {12, 0},
                       {13, 0}}) {
    CAPTURE(c.step);
    work.committed(StepId(c.step));
    CHECK(work.left() == c.left);
    if (c.step <= 12) CHECK(work.may_be_between_epochs() == (c.step > 0 && c.left % 100 == 0));
  }
}

TEST_CASE("work: steps of a world that is not known to have formed may end an epoch") {
  Work work;
  work.asked(train(1, 100, 3));
  work.committed(StepId(5));
  CHECK(work.may_be_between_epochs());
  Work own_loop;
  own_loop.asked(train(1, 0, 0));
  own_loop.committed(StepId(5));
  CHECK_FALSE(own_loop.may_be_between_epochs());
}

TEST_CASE("work: another world continues in the middle of an epoch where the last one was") {
  Work work;
  work.asked(train(1, 100, 2));
  work.world_changed(StepId(0), 30);
  work.committed(StepId(2));
  // A report of the new world may come before it is known that the world has formed.
  work.committed(StepId(3));
  work.world_changed(StepId(2), 15);  // 60 used, 40 left of the epoch: 15 15 10
  CHECK(work.left() == 125);
  work.committed(StepId(5));
  CHECK(work.left() == 100);
  work.committed(StepId(6));
  CHECK(work.left() == 85);
  // Steps that were lost are repeated, and counted once.
  work.world_changed(StepId(4), 15);
  work.committed(StepId(6));
  CHECK(work.left() == 85);
}

TEST_CASE("work: each call of train has its own amount of work") {
  Work work;
  work.asked(train(1, 100, 1));
  work.world_changed(StepId(0), 50);
  work.committed(StepId(2));
  CHECK(work.left() == 0);
  work.asked(train(2, 10, 10));
  CHECK(work.left() == 100);
  work.asked(train(1, 100, 1));  // from a newcomer
  work.committed(StepId(5));
  CHECK(work.left() == 70);
}

TEST_CASE("work: the work of a program with its own loop is not known") {
  Work work;
  work.asked(train(1, 0, 0));
  work.world_changed(StepId(0), 50);
  CHECK_FALSE(work.left());
}

TEST_CASE("work: training without an end always has work left") {
  constexpr auto endless = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t most = std::int64_t{1} << 40;  // the most that a worker may ask for
  struct Case {
    std::int64_t samples;
    std::int64_t epochs;
    std::int64_t batch;
  };
  for (const Case& c : {Case{10'000'000, most, 64},
                        {most, most, 64},
                        {endless, endless, most},
                        {64, endless, 64}}) {
    CAPTURE(c.samples);
    Work work;
    work.asked(train(1, c.samples, c.epochs));
    work.world_changed(StepId(0), c.batch);
    work.committed(StepId(10));
    CHECK(work.left() > endless / 2);
  }
}

TEST_CASE("work: a job that goes on from a save has done what the save holds") {
  for (const bool later_call : {false, true}) {
    CAPTURE(later_call);
    Work work;
    work.asked(train(1, 100, 3));
    work.restored({.step = 7, .call = later_call ? 2 : 1, .epoch = 1, .cursor = 90});
    if (later_call) work.asked(train(2, 100, 3));  // the first one returns at once
    work.world_changed(StepId(7), 30);
    CHECK(work.left() == 110);
    work.committed(StepId(8));
    CHECK(work.left() == 100);
    CHECK(work.may_be_between_epochs());
  }
}

TEST_CASE("work: a world that goes back to a save has more to do again") {
  Work work;
  work.asked(train(1, 100, 1));
  work.world_changed(StepId(0), 10);
  work.committed(StepId(8));
  work.restored({.step = 5, .call = 1, .cursor = 50});
  work.world_changed(StepId(5), 10);
  CHECK(work.left() == 50);
}
