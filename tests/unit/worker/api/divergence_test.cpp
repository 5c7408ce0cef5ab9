// Members whose state differs by one bit: the next step detects it, and a minority member gets the
// others' state. The survivors must end with the same weights as an undisturbed run.
#include <doctest/doctest.h>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

const BatchPlan twelve{.global_batch = 12};

// Of `size` workers, one flips a bit while it applies step 6.
struct Flipped {
  Flipped(int size, int odd, const std::string& what, const Job::Arguments& more = {})
      : job(twelve) {
    for (int i = 0; i < size; ++i) {
      Job::Arguments arguments = more;
      if (i == odd) arguments.insert(arguments.end(), {"--flip", what});
      workers.push_back(job.start(arguments));
    }
    job.on_message = [this](WorkerId from, const wire::FromWorker& message) {
      if (const auto* diverged = std::get_if<wire::Diverged>(&message)) {
        told_by.push_back(from);
        told = *diverged;
      }
    };
    job.until_ready(workers);
    job.change(workers);
  }

  void check_finals(const Job::Arguments& alone) const {
    const auto expected = final_figures(run_alone(alone));
    for (const WorkerId worker : workers) check_close(final_figures(job.lines(worker)), expected);
  }

  Job job;
  std::vector<WorkerId> workers, told_by;
  wire::Diverged told;
};

TEST_CASE("one member of three gets the state of the two others") {
  for (const char* what : {"weights:6", "buffer:6"}) {
    CAPTURE(std::string(what));
    Flipped run(3, 1, what);
    run.job.until_all_ended();
    CHECK(run.told_by.size() == 3);
    CHECK(run.told.odd == std::vector<WorkerId>{run.workers[1]});
    // committed by the step with the flip, and noticed in the next one
    CHECK(run.told.step == StepId(7));
    CHECK_FALSE(run.told.mixed);
    CHECK_FALSE(run.told.where.empty());
    REQUIRE(run.job.worlds.size() == 2);
    CHECK(run.job.worlds[1].step == StepId(7));
    CHECK(run.job.worlds[1].world.members.size() == 3);
    CHECK(run.job.worlds[1].transfer_bytes > 0);
    check_lineage(run.job.all_lines(), 100, 2);
    run.check_finals({"--batch", "12"});
  }
}

TEST_CASE("rank 0 may be the odd one") {
  Flipped run(4, 0, "weights:6");
  run.job.until_all_ended();
  CHECK(run.told.odd == std::vector<WorkerId>{run.workers[0]});
  run.check_finals({"--batch", "12"});
}

TEST_CASE("when two members differ, neither is assumed to be right") {
  Flipped run(2, 1, "weights:6");
  run.job.until("both have told", [&] { return run.told_by.size() >= 2; });
  CHECK(run.told.odd.empty());
  CHECK(run.told.step == StepId(7));
  for (const WorkerId worker : run.workers) CHECK_FALSE(run.job.has_line(worker, "applied 1 7"));
}

TEST_CASE("a loop of its own gets the others' state as well") {
  Flipped run(3, 2, "weights:6", {"--mode", "loop"});
  run.job.until_all_ended();
  CHECK(run.told.odd == std::vector<WorkerId>{run.workers[2]});
  CHECK(run.told.step == StepId(6));  // the comparison is part of its commit
  run.check_finals({"--mode", "loop"});
}

}  // namespace
}  // namespace elasticrun::engine_test
