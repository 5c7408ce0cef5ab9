// The lower-level calls: a program's own loop, in worlds that change.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

const BatchPlan none;
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

TEST_CASE("three workers in their own loop do what a single one does") {
  Job job(none);
  const auto workers = job.form(3, loop);
  job.until_all_ended();
  check_all(job, workers);
}

TEST_CASE("the world of a program's own loop grows and shrinks inside commit") {
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

// Survivors that are between two steps when they hear of the death go on in the next world without
// being told, so not each case shows that.
TEST_CASE("a member that dies in its own loop does not change the result") {
  bool told = false;
  for (const char* place : {"compute:7", "apply:7", "applied:7", "apply:19", "applied:19"}) {
    CAPTURE(std::string(place));
    Job job(none);
    const std::vector<WorkerId> workers{job.start(loop_with({"--die", place})), job.start(loop),
                                        job.start(loop)};
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    told |= job.has_line(workers[1], "changed") || job.has_line(workers[2], "changed");
    // A commit that fails on one member but succeeds on another counts as successful.
    check_all(job, {workers[1], workers[2]});
  }
  CHECK(told);
}

// The lease of one member ends in its commit, so it may not count a step that the others have
// committed.
TEST_CASE("a commit that fails on one member but succeeds on others becomes part of its state") {
  for (const char* undo : {"no", "yes"}) {
    CAPTURE(std::string(undo));
    Job job(none);
    const WorkerId victim = job.start(loop_with({"--undo", undo, "--hold", "applied:7"}));
    const WorkerId slow = job.start(loop_with({"--hold", "applied:7"}));
    const WorkerId third = job.start(loop);
    job.until_ready({victim, slow, third});
    job.change({victim, slow, third});
    std::string phase;
    StepId answered;
    job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
      if (from != victim) return;
      if (const auto* sample = std::get_if<wire::Sample>(&message))
        phase = sample->step == StepId(7) ? sample->phase : "";
      if (const auto* answer = std::get_if<wire::Answer>(&message)) answered = answer->committed;
    };
    job.until_line(slow, "holding");
    job.until_line(victim, "holding");
    job.until("the victim has applied", [&] { return phase == "compute"; });
    job.let_go(victim);
    job.until("the victim is in its commit", [&] { return phase == "reduce"; });
    job.send(victim, wire::Lease{.ends_ns = 1});
    job.until_heard();
    job.hold_messages(victim);  // its messages would end the others' wait
    job.let_go(slow);
    job.until_line(slow, "applied 1 7 3");
    job.until_line(third, "applied 1 7 3");
    job.let_messages_through(victim);
    job.until("the world is broken", [&] { return answered != StepId(); });
    CHECK(answered == StepId(7));
    job.send(victim, wire::Lease{.ends_ns = never.time_since_epoch().count()});
    job.until_all_ended();
    check_all(job, {victim, slow, third});
    CHECK_FALSE(job.has_line(victim, "changed 7"));
    CHECK(job.has_line(victim, "applied 1 7 3"));
  }
}

TEST_CASE("after a commit that failed on all members the program is in the next world") {
  for (const char* undo : {"no", "yes"}) {
    Job job(none);
    const std::vector<WorkerId> workers{job.start(loop_with({"--die", "applied:7"})),
                                        job.start(loop_with({"--undo", undo})),
                                        job.start(loop_with({"--undo", undo}))};
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    check_all(job, {workers[1], workers[2]});
    for (const WorkerId worker : {workers[1], workers[2]})
      CHECK(job.has_line(worker, "changed 7 7 2"));
  }
}

// Otherwise a survivor that waits for workers for longer than --hung would be killed, and the state
// lost.
TEST_CASE("a member that waits for the next world reports no step") {
  for (const char* place : {"compute:7", "applied:7"}) {
    CAPTURE(std::string(place));
    Job job(none);
    const auto arguments = loop_with({"--hold", place});
    const WorkerId waiter = job.start(arguments), late = job.start(arguments),
                   victim = job.start(arguments);
    job.until_ready({waiter, late, victim});
    job.change({waiter, late, victim});
    for (const WorkerId worker : {waiter, late, victim}) job.until_line(worker, "holding");
    std::string phase;
    bool answered = false;
    job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
      if (from != waiter) return;
      if (const auto* sample = std::get_if<wire::Sample>(&message)) phase = sample->phase;
      answered |= std::holds_alternative<wire::Answer>(message);
    };
    job.hold_messages(late);  // delays its answer, without which no world can form
    job.kill(victim);
    job.until("the waiter has heard of it", [&] { return answered; });
    job.let_go(waiter);
    job.until("the waiter waits", [&] { return phase == "idle"; });
    job.let_messages_through(late);
    job.let_go(late);
    job.until_all_ended();
    check_all(job, {waiter, late});
  }
}

TEST_CASE("the steps of a program's own loop are measured, with the samples that it reports") {
  Job job(none);
  job.form(2, loop_with({"--steps", "2000"}));
  job.until_all_ended();
  std::int64_t steps = 0, taken = 0;
  for (const wire::Sample& sample : job.samples) {
    steps += sample.steps;
    taken += sample.samples;
    if (sample.steps == 0) continue;
    CHECK(sample.samples == 6 * sample.steps);
    CHECK(sample.wall_ns == sample.compute_ns + sample.reduce_ns);
  }
  CHECK(steps > 1000);
  CHECK(taken == 6 * steps);
}

TEST_CASE("a collective may follow the last commit, and then finish") {
  for (const char* kind : {"reduce", "broadcast", "barrier"})
    for (const int size : {1, 2, 3}) {
      CAPTURE(std::string(kind));
      CAPTURE(size);
      Job job(none);
      const auto workers = job.form(size, loop_with({"--after", kind}));
      job.until_all_ended();
      check_all(job, workers);
      for (const WorkerId worker : workers) {
        if (kind == std::string("reduce"))
          CHECK(job.said(worker, "counted ") == std::to_string(size * (size + 1) / 2));
        CHECK_FALSE(job.has_line(worker, "changed"));
      }
    }
}

TEST_CASE("when a member dies after its last commit, the survivors repeat what followed it") {
  struct Case {
    const char* place;
    int size, rank;
  };
  for (const auto& [place, size, rank] :
       {Case{"after:20", 3, 0}, Case{"after:20", 3, 2}, Case{"counted:20", 3, 0},
        Case{"counted:20", 3, 2}, Case{"after:20", 2, 0}, Case{"counted:20", 2, 1}}) {
    CAPTURE(std::string(place));
    CAPTURE(size);
    CAPTURE(rank);
    Job job(none);
    std::vector<WorkerId> workers;
    for (int i = 0; i < size; ++i)
      workers.push_back(job.start(i == rank ? loop_with({"--after", "reduce", "--die", place})
                                            : loop_with({"--after", "reduce"})));
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    std::erase(workers, workers[static_cast<std::size_t>(rank)]);
    check_all(job, workers);
    for (const WorkerId worker : workers)
      CHECK(job.said(worker, "counted ") == (size == 3 ? "3" : "1"));
  }
}

// Gloo broadcasts along a tree: while one rank still waits for the last one, two others are done.
TEST_CASE("a rank that is done with the last collective repeats it for ranks that are not") {
  const char* const backend = std::getenv("TOY_BACKEND");
  if (backend && backend == std::string("nccl")) return;  // over NCCL all ranks wait for each other
  Job job(none);
  std::vector<WorkerId> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(job.start(loop_with({"--after", "broadcast"})));
  workers.push_back(job.start(loop_with({"--after", "broadcast", "--hold", "after:20"})));
  std::set<WorkerId> through;
  job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
    if (std::holds_alternative<wire::Done>(message)) through.insert(from);
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

TEST_CASE("a member may leave by itself") {
  Job job(none);
  const std::vector<WorkerId> workers{job.start(loop_with({"--leave", "6"})), job.start(loop),
                                      job.start(loop)};
  StepId left;
  job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
    // The others say so, too, when they close their job.
    if (const auto* leave = std::get_if<wire::Leave>(&message); leave && from == workers[0])
      left = leave->step;
  };
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  CHECK(job.has_line(workers[0], "left"));
  CHECK(left == StepId(7));
  CHECK(job.exit_of(workers[0]).code == 0);
  check_all(job, {workers[1], workers[2]});
}

}  // namespace
}  // namespace elasticrun::engine_test
