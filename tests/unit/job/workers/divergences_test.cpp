// What is reported and done when the states of members differ.
#include "job/core/workers/divergences.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::workers;

namespace {

constexpr std::int64_t steps_a_look = 100;

struct Story {
  // Reports a divergence in a new world, as after a repair.
  Divergences::Verdict differs(std::int64_t step, std::uint32_t worker) {
    world = world.next();
    const wire::Diverged message{.generation = world,
                                 .step = StepId(step),
                                 .odd = {WorkerId(worker)},
                                 .where = "bytes 0 to 7 of 'w'"};
    const std::vector<std::string> names{fmt::format("worker {}", worker)};
    const auto verdict = divergences.hear(message, names, steps_a_look);
    REQUIRE(verdict);
    CHECK_FALSE(divergences.hear(message, names, steps_a_look));  // another member reports the same
    return *verdict;
  }
  Divergences divergences;
  Generation world;
};

}  // namespace

TEST_CASE("a state is repaired, and the job ends when the same worker differs a third time") {
  Story story;
  CHECK_FALSE(story.differs(10, 3).ends);
  CHECK_FALSE(story.differs(40, 3).ends);
  const auto third = story.differs(50, 3);
  CHECK(third.ends);
  CHECK(third.words.starts_with("after 50 steps the state of worker 3 differs"));
  CHECK(third.words.find("for the third time; register all state") != std::string::npos);
}

TEST_CASE("other workers, and long times without divergence, start a new count") {
  Story story;
  CHECK_FALSE(story.differs(10, 3).ends);
  CHECK_FALSE(story.differs(20, 3).ends);
  CHECK_FALSE(story.differs(30, 4).ends);
  CHECK_FALSE(story.differs(21 + Divergences::few_looks * steps_a_look, 3).ends);
  CHECK_FALSE(story.differs(40 + Divergences::few_looks * steps_a_look, 3).ends);
  CHECK(story.differs(50 + Divergences::few_looks * steps_a_look, 3).ends);
}
