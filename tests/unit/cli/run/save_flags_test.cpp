// What a job of Slurm means for one that saves its state.
#include "cli/run/save_flags.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace elasticrun;
using namespace elasticrun::cli::run;
using std::chrono::hours;

namespace {

job::JobSpec::Saving saving(Duration limit = {}) {
  job::JobSpec::Saving one;
  one.folder = "/state";
  one.time_limit = limit;
  return one;
}

}  // namespace

TEST_CASE("the nearer of the two limits counts") {
  struct Row {
    Duration own, left, limit;
    const char* limited_by;
  };
  for (const Row& row : {Row{{}, hours(4), hours(4), "the time limit of job 7"},
                         Row{hours(1), hours(4), hours(1), "--time-limit"},
                         Row{hours(9), hours(4), hours(4), "the time limit of job 7"},
                         Row{{}, -hours(1), std::chrono::seconds(1), "the time limit of job 7"}}) {
    auto one = saving(row.own);
    one.slurm_job = "7";
    limit_to_slurm(one, row.left);
    CHECK(one.time_limit == row.limit);
    CHECK(one.limited_by == row.limited_by);
  }
}

TEST_CASE("a job that saves its state knows its job of Slurm, and its signal") {
  auto one = saving();
  fit_to_slurm(one, {{"SLURM_JOB_ID", "7"}});
  CHECK(one.slurm_job == "7");
  CHECK(one.stop_signal == SIGUSR1);
  // Its plain number may mean the whole array.
  auto task = saving();
  task.stop_signal = SIGUSR2;
  fit_to_slurm(task,
               {{"SLURM_JOB_ID", "7"}, {"SLURM_ARRAY_JOB_ID", "7"}, {"SLURM_ARRAY_TASK_ID", "3"}});
  CHECK(task.slurm_job == "7_3");
  CHECK(task.stop_signal == SIGUSR2);
  job::JobSpec::Saving nothing;
  fit_to_slurm(nothing, {{"SLURM_JOB_ID", "7"}});
  CHECK(nothing.slurm_job.empty());
  CHECK(nothing.stop_signal == 0);
}
