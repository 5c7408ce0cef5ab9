// The lower-level calls: a program's own loop in worlds that change.
#include <doctest/doctest.h>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

const wire::BatchPlan none;
const Job::Arguments loop{"--mode", "loop"};

Job::Arguments loop_with(const Job::Arguments& more) {
  Job::Arguments arguments = loop;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_all(const Job& job, const std::vector<WorkerId>& finishers) {
  check_lineage(job.all_lines(), 20 * 12, 1);
  const auto expected = final_figures(run_alone(loop));
  for (const WorkerId worker : finishers) {
    CHECK(job.exit_of(worker).code == 0);
    check_close(final_figures(job.lines(worker)), expected);
  }
}

TEST_CASE("three workers in their own loop do what one alone does") {
  Job job(none);
  const auto workers = job.form(3, loop);
  job.until_all_ended();
  check_all(job, workers);
}

TEST_CASE("the world of an own loop grows and shrinks inside commit") {
  Job job(none);
  std::vector<WorkerId> workers = job.form(1, loop_with({"--hold", "compute:5"}));
  job.until_line(workers[0], "holding");
  const Job::Arguments newcomer = loop_with({"--hold", "compute:12"});
  workers.push_back(job.start(newcomer));
  workers.push_back(job.start(newcomer));
  job.until_ready(workers);
  job.change({workers[1], workers[2]});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.until_line(workers[1], "holding 12");
  job.until_line(workers[2], "holding 12");
  job.change({}, {workers[0]});
  job.until_going(Generation(3));
  job.let_go(workers[1]);
  job.let_go(workers[2]);
  job.until_all_ended();
  check_all(job, {workers[1], workers[2]});
  CHECK(job.has_line(workers[0], "applied 1 5 1"));
  CHECK(job.has_line(workers[0], "applied 2 6 3"));
  CHECK(job.has_line(workers[0], "evicted "));
  CHECK(job.has_line(workers[1], "applied 3 13 2"));
  for (const WorkerId worker : workers) CHECK(!job.has_line(worker, "changed"));
}

TEST_CASE("a member of an own loop dies") {
  for (const char* place : {"compute:7", "apply:7", "applied:7", "apply:19", "applied:19"}) {
    CAPTURE(std::string(place));
    Job job(none);
    const std::vector<WorkerId> workers{job.start(loop_with({"--die", place})), job.start(loop),
                                        job.start(loop)};
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    CHECK(job.has_line(workers[1], "changed"));
    check_all(job, {workers[1], workers[2]});
  }
}

TEST_CASE("a member leaves by itself") {
  Job job(none);
  const std::vector<WorkerId> workers{job.start(loop_with({"--leave", "6"})), job.start(loop),
                                      job.start(loop)};
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  CHECK(job.has_line(workers[0], "left"));
  CHECK(job.exit_of(workers[0]).code == 0);
  check_all(job, {workers[1], workers[2]});
}

}  // namespace
}  // namespace elasticrun::engine_test
