// When a step counts as one that kills its workers.
#include "job/core/workers/poison.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using job::workers::Poison;

TEST_CASE("three attempts at one step make it certain, whichever workers die") {
  Poison poison;
  CHECK_FALSE(poison.suspected());
  poison.world_formed(StepId(5));
  poison.committed(StepId(6));
  poison.died("worker 1 (rank 0) was killed by signal 11", Generation(1));
  CHECK(poison.suspected());
  poison.died("worker 2 (rank 1) was killed by signal 11", Generation(1));  // in the same attempt
  poison.world_formed(StepId(56));
  CHECK(poison.suspected());
  poison.committed(StepId(56));  // a late report
  poison.died("worker 3 (rank 0) exited with code 1", Generation(2));
  CHECK_FALSE(poison.certain());
  poison.world_formed(StepId(56));
  poison.samples("its samples: 1 2 3");
  poison.died("worker 4 (rank 0) was killed by signal 11", Generation(3));
  CHECK(poison.certain());
  CHECK(poison.words(false) ==
        "step 57 has killed its workers 3 times: worker 1 (rank 0) was killed by signal 11; "
        "worker 2 (rank 1) was killed by signal 11; worker 3 (rank 0) exited with code 1; "
        "worker 4 (rank 0) was killed by signal 11; its samples: 1 2 3");
}

TEST_CASE("a step that is committed at last is not suspected any more") {
  Poison poison;
  poison.died("worker 1", Generation(1));
  poison.world_formed(StepId(56));
  poison.died("worker 2", Generation(2));
  poison.world_formed(StepId(56));
  poison.committed(StepId(57));
  CHECK_FALSE(poison.suspected());
  poison.died("worker 3", Generation(3));
  poison.world_formed(StepId(60));
  CHECK(poison.suspected());
  poison.world_formed(StepId(61));  // another world is one step further
  CHECK_FALSE(poison.suspected());
}

TEST_CASE("before the first world the step that kills is the first one") {
  Poison poison;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    poison.died("worker 1", Generation(i));
    if (i < 3) poison.world_formed(StepId(0));
  }
  CHECK(poison.words(false).starts_with("step 1 has killed"));
}

TEST_CASE("attempts may end before their world is known to have formed") {
  Poison poison;
  poison.committed(StepId(40));  // reports come late
  poison.died("worker 1", Generation(1));
  poison.committed(StepId(41));  // a survivor's answer
  poison.died("worker 2", Generation(2));
  SUBCASE("at one step") {
    poison.died("worker 3", Generation(3));
    CHECK(poison.certain());
    CHECK(poison.words(false).starts_with("step 42 has killed its workers 3 times"));
    CHECK(poison.words(true).starts_with(
        "step 42, or on_epoch before it, has killed its workers 3 times"));
  }
  SUBCASE("at different steps") {
    poison.committed(
        StepId(42));  // by the others of world 2, so worker 2 died in the step after it
    CHECK(poison.suspected());
    poison.died("worker 3", Generation(3));
    CHECK_FALSE(poison.certain());
    poison.died("worker 4", Generation(4));
    CHECK(
        poison.words(false).starts_with("step 43 has killed its workers 3 times: worker 2; worker "
                                        "3; worker 4"));
  }
}

// One member may be a step ahead: it has died in a step that the others have not begun.
TEST_CASE("a step that another world must make again first is found as well") {
  Poison poison;
  poison.world_formed(StepId(0));
  poison.died("worker 1", Generation(1));  // in step 14
  poison.world_formed(StepId(12));         // for the others have not committed 13
  poison.died("worker 2", Generation(2));  // in step 14
  poison.committed(StepId(13));
  CHECK(poison.suspected());
  for (const std::uint64_t world : {3, 4}) {
    poison.world_formed(StepId(13));
    CHECK(poison.suspected());
    CHECK_FALSE(poison.certain());
    poison.died("worker 3", Generation(world));
  }
  CHECK(poison.certain());
  CHECK(poison.words(false).starts_with("step 14 has killed its workers 3 times: worker 2; "));
}
