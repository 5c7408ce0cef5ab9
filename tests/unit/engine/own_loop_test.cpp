// The lower-level calls: a program's own loop in worlds that change.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

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

TEST_CASE("a collective behind the last commit, and then finish") {
  for (const char* kind : {"reduce", "broadcast", "barrier"})
    for (const int size : {1, 3}) {
      CAPTURE(std::string(kind));
      CAPTURE(size);
      Job job(none);
      const auto workers = job.form(size, loop_with({"--after", kind}));
      job.until_all_ended();
      check_all(job, workers);
      for (const WorkerId worker : workers) {
        if (kind == std::string("reduce"))
          CHECK(job.said(worker, "counted ") == (size == 1 ? "1" : "6"));
        CHECK_FALSE(job.has_line(worker, "changed"));
      }
    }
}

TEST_CASE("a member dies behind its last commit: what followed that begins again on all") {
  for (const char* place : {"after:20", "counted:20"})
    for (const int rank : {0, 2}) {
      CAPTURE(std::string(place));
      CAPTURE(rank);
      Job job(none);
      std::vector<WorkerId> workers;
      for (int i = 0; i < 3; ++i)
        workers.push_back(job.start(i == rank ? loop_with({"--after", "reduce", "--die", place})
                                              : loop_with({"--after", "reduce"})));
      job.until_ready(workers);
      job.change(workers);
      job.until_all_ended();
      std::erase(workers, workers[static_cast<std::size_t>(rank)]);
      check_all(job, workers);
      for (const WorkerId worker : workers) CHECK(job.said(worker, "counted ") == "3");
    }
}

// Gloo broadcasts along a tree: while one rank waits for the last, two others are through.
TEST_CASE("who is through with the last collective makes it again for those who are not") {
  const char* const backend = std::getenv("TOY_BACKEND");
  if (backend && backend == std::string("nccl")) return;  // there all wait for all
  Job job(none);
  std::vector<WorkerId> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(job.start(loop_with({"--after", "broadcast"})));
  workers.push_back(job.start(loop_with({"--after", "broadcast", "--hold", "after:20"})));
  std::set<WorkerId> through;
  job.on_letter = [&](WorkerId from, const wire::FromWorker& letter) {
    if (std::holds_alternative<wire::Done>(letter)) through.insert(from);
  };
  job.until_ready(workers);
  job.change(workers);
  job.until("two ranks are in finish", [&] { return through.size() == 2; });
  job.kill(workers[3]);
  job.until_all_ended();
  workers.pop_back();
  check_all(job, workers);
  for (const WorkerId worker : workers) CHECK(job.has_line(worker, "changed 20"));
  CHECK(job.has_line(workers[2], "counted 1"));
}

TEST_CASE("a member leaves by itself") {
  Job job(none);
  const std::vector<WorkerId> workers{job.start(loop_with({"--leave", "6"})), job.start(loop),
                                      job.start(loop)};
  Step left;
  job.on_letter = [&](WorkerId, const wire::FromWorker& letter) {
    if (const auto* leave = std::get_if<wire::Leave>(&letter)) left = leave->step;
  };
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  CHECK(job.has_line(workers[0], "left"));
  CHECK(left == Step(7));
  CHECK(job.exit_of(workers[0]).code == 0);
  check_all(job, {workers[1], workers[2]});
}

}  // namespace
}  // namespace elasticrun::engine_test
