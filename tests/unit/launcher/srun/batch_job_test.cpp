// What scontrol says of a job.
#include "launcher/srun/batch_job.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>

#include "launcher/srun/orphan.hpp"

using namespace elasticrun::launcher::srun;

TEST_CASE("a job as scontrol shows it") {
  // Slurm 22.05, shortened.
  const auto job = parse_batch_job(
      "JobId=12 JobName=wrap UserId=root(0) Priority=4294901758 Requeue=1 Restarts=2 BatchFlag=1 "
      "Reboot=0 ExitCode=0:0 RunTime=00:00:03 TimeLimit=01:00:00 TimeMin=N/A "
      "StartTime=1795555000 EndTime=1795558600 Deadline=N/A Comment=EndTime=7 \n");
  REQUIRE(job.has_value());
  CHECK(job->id == "12");
  CHECK(job->script);
  CHECK(job->may_be_requeued);
  CHECK(job->restarts == 2);
  CHECK(job->ends_at == std::chrono::sys_seconds(std::chrono::seconds(1795558600)));
  CHECK(why_not_again(*job).empty());
}

TEST_CASE("a job that has no time limit, or cannot be started again") {
  // Without a limit Slurm shows an end in a year.
  const auto endless = parse_batch_job(
      "JobId=3 Requeue=0 Restarts=0 BatchFlag=1 TimeLimit=UNLIMITED EndTime=1827091000");
  REQUIRE(endless.has_value());
  CHECK_FALSE(endless->ends_at);
  CHECK(why_not_again(*endless) ==
        "job 3 may not be requeued; submit it again, and with --requeue for the next time");
  const auto interactive = parse_batch_job(
      "JobId=4 Requeue=1 Restarts=0 BatchFlag=0 TimeLimit=00:10:00 EndTime=Unknown");
  REQUIRE(interactive.has_value());
  CHECK_FALSE(interactive->ends_at);
  CHECK(why_not_again(*interactive) ==
        "job 4 of Slurm has no script to start again; give the command in another allocation");
}

TEST_CASE("a job whose nodes are for another job") {
  const auto of = [](const char* preempted) {
    return parse_batch_job(fmt::format(
        "JobId=3 Requeue=1 Restarts=0 BatchFlag=1 TimeLimit=UNLIMITED EndTime=1827091000 "
        "PreemptEligibleTime=1795832842 PreemptTime={} LastSchedEval=1795832842",
        preempted));
  };
  CHECK(of("1795832844")->preempted);
  CHECK_FALSE(of("None")->preempted);
}

TEST_CASE("a job that runs without the node of its script") {
  const auto of = [](const char* state, const char* nodes, int script = 1) {
    return parse_batch_job(
        fmt::format("JobId=3 Requeue=1 Restarts=1 BatchFlag={} JobState={} "
                    "ReqNodeList=(null) ExcNodeList=(null) NodeList={} BatchHost=node1 NumNodes=2",
                    script, state, nodes));
  };
  CHECK(of("RUNNING", "node[2-3]")->runs);
  CHECK(of("RUNNING", "node[2-3]")->lost_its_script);
  CHECK_FALSE(of("RUNNING", "node[1-3]")->lost_its_script);
  CHECK_FALSE(of("RUNNING", "node1")->lost_its_script);
  CHECK_FALSE(of("RUNNING", "(null)")->lost_its_script);
  CHECK_FALSE(of("RUNNING", "node[2-3]", 0)->lost_its_script);
  CHECK_FALSE(of("COMPLETING", "node[2-3]")->runs);
  CHECK(orphan(*of("RUNNING", "node[2-3]"), 1) == Orphan::requeue);
}

TEST_CASE("an agent ends its job only when the script is certainly lost") {
  const BatchJob lost{.id = "3",
                      .script = true,
                      .may_be_requeued = true,
                      .runs = true,
                      .lost_its_script = true,
                      .restarts = 1};
  CHECK(orphan(lost, 1) == Orphan::requeue);
  CHECK(orphan(lost, 0) == Orphan::leave);  // it has been requeued, and is lost again
  BatchJob other = lost;
  other.may_be_requeued = false;
  CHECK(orphan(other, 1) == Orphan::cancel);
  other = lost;
  other.lost_its_script = false;
  CHECK(orphan(other, 1) == Orphan::wait);
  other = lost;
  other.runs = false;  // it has ended, or is in the queue again
  CHECK(orphan(other, 1) == Orphan::leave);
  other = lost;
  other.script = false;  // of salloc
  CHECK(orphan(other, 1) == Orphan::leave);
  CHECK(asks_for_orphan(0));
  CHECK_FALSE(asks_for_orphan(100));
  CHECK_FALSE(asks_for_orphan(-1));
}

TEST_CASE("what is no job is an error") {
  CHECK(parse_batch_job("").has_error());
  CHECK(parse_batch_job("No jobs in the system").has_error());
  CHECK(find_batch_job("12; touch /tmp/x").error().text ==
        "SLURM_JOB_ID '12; touch /tmp/x' is no number");
}
