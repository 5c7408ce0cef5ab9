// Collectives of the program at the end of an epoch that is a step, in worlds that change.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

constexpr std::int64_t samples = 100, epochs = 2;
const BatchPlan twelve{.global_batch = 12};
const Job::Arguments ends{"--end", "reduce"};

Job::Arguments ends_with(const Job::Arguments& more) {
  Job::Arguments arguments = ends;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::int64_t times_said(const Job& job, WorkerId worker, const std::string& line) {
  return std::ranges::count(job.lines(worker), line);
}

// Each survivor has ended each epoch once, or has received the state of one that has.
void check_all(const Job& job, const std::vector<WorkerId>& finishers) {
  static const auto expected = final_figures(run_alone(ends_with({"--batch", "12"})));
  check_lineage(job.all_lines(), samples, epochs);
  for (const WorkerId worker : finishers) {
    CHECK(job.exit_of(worker).code == 0);
    check_close(final_figures(job.lines(worker)), expected);
    for (const char* line : {"ended 1", "ended 2"}) CHECK(times_said(job, worker, line) <= 1);
  }
}

TEST_CASE("figures are reduced at the end of an epoch") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    Job job(twelve);
    const auto workers = job.form(size, ends);
    job.until_all_ended();
    check_all(job, workers);
    for (const WorkerId worker : workers) {
      CHECK(times_said(job, worker, "counted " + std::to_string(size * (size + 1) / 2)) == epochs);
      CHECK_FALSE(job.has_line(worker, "missed"));
    }
  }
}

TEST_CASE("when a member dies at the end of an epoch, the survivors repeat it") {
  // epoch: before the first collective; counted: before the second; ended: in the step of the end.
  for (const char* place : {"epoch:1", "counted:1", "ended:1", "counted:2"})
    for (const int rank : {0, 2}) {
      CAPTURE(std::string(place));
      CAPTURE(rank);
      Job job(twelve);
      std::vector<WorkerId> workers;
      for (int i = 0; i < 3; ++i)
        workers.push_back(job.start(i == rank ? ends_with({"--die", place}) : ends));
      job.until_ready(workers);
      job.change(workers);
      job.until_all_ended();
      const WorkerId victim = workers[static_cast<std::size_t>(rank)];
      CHECK(job.exit_of(victim).signal == SIGKILL);
      std::erase(workers, victim);
      check_all(job, workers);
      const std::string missed = place == std::string("counted:2") ? "missed 2" : "missed 1";
      for (const WorkerId worker : workers) {
        CHECK(job.said(worker, "counted ") == "3");
        // Of an end that begins with a death a slow survivor is told in the next world alone.
        const bool told = std::string(place).starts_with("counted");
        CHECK(times_said(job, worker, missed) >= (told ? 1 : 0));
        CHECK(times_said(job, worker, missed) <= 1);
      }
    }
}

// Otherwise the call after the one that was left out would meet it on the other ranks.
TEST_CASE("a collective that one member leaves out is the last one at this end") {
  Job job(twelve);
  const WorkerId victim = job.start(ends_with({"--hold", "epoch:1", "--then", "missed:1"}));
  const WorkerId other = job.start(ends);
  job.until_ready({victim, other});
  job.change({victim, other});
  job.until_line(victim, "holding");
  job.send(victim, wire::Lease{.ends_ns = 1});
  job.until_heard();
  job.let_go(victim);
  job.until_line(victim, "missed 1");
  job.send(victim, wire::Lease{.ends_ns = never.time_since_epoch().count()});
  job.until_heard();
  job.let_go(victim);
  job.until_all_ended();
  check_all(job, {victim, other});
  CHECK_FALSE(job.has_line(other, "missed"));
  CHECK(job.worlds.size() == 1);
}

TEST_CASE("workers that make different calls at the end of an epoch are all told so") {
  for (const char* odd : {"barrier", "none"}) {
    CAPTURE(std::string(odd));
    Job job(twelve);
    const std::vector<WorkerId> workers{job.start(ends), job.start({"--end", odd}),
                                        job.start(ends)};
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    for (const WorkerId worker : workers) {
      CHECK(job.exit_of(worker).code == 1);
      CHECK(job.said(worker, "failed ").starts_with("the end of an epoch: this worker calls "));
    }
    CHECK(job.said(workers[0], "failed ").find("all_reduce of 1 float64") != std::string::npos);
  }
}

}  // namespace
}  // namespace elasticrun::engine_test
