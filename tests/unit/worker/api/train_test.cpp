// train() in worlds that grow, shrink, break and end. Each run must end with the same weights as a
// single worker.
#include <doctest/doctest.h>

#include <algorithm>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

// 100 samples in steps of 12: nine steps per epoch, the last one with four samples.
constexpr std::int64_t samples = 100, epochs = 2;
const BatchPlan twelve{.global_batch = 12};

std::vector<double> alone(Job::Arguments arguments = {}, int call = 1) {
  arguments.insert(arguments.end(), {"--batch", "12"});
  return final_figures(run_alone(arguments), call);
}

void check_all(const Job& job, const std::vector<WorkerId>& finishers,
               const std::vector<double>& expected, std::int64_t all_epochs = epochs) {
  check_lineage(job.all_lines(), samples, all_epochs);
  for (const WorkerId worker : finishers) {
    CHECK(job.exit_of(worker).code == 0);
    CHECK(job.exit_of(worker).signal == 0);
    check_close(final_figures(job.lines(worker)), expected);
  }
}

std::int64_t times_said(const Job& job, const std::string& begin) {
  std::int64_t times = 0;
  for (const auto& lines : job.all_lines())
    times += std::ranges::count_if(
        lines, [&](const std::string& line) { return line.starts_with(begin); });
  return times;
}

TEST_CASE("one worker under a controller does what one without it does") {
  Job job(twelve);
  const auto workers = job.form(1, {"--first-weight", "3"});
  job.until_all_ended();
  check_all(job, workers, alone({"--first-weight", "3"}));
  REQUIRE(job.trained.size() == 1);
  CHECK(job.trained[0].call == 1);
  REQUIRE(job.worlds.size() == 1);
  CHECK(job.worlds[0].idle_ns == -1);
}

TEST_CASE("three workers start with the weights of rank 0") {
  Job job(twelve);
  std::vector<WorkerId> workers{job.start({"--first-weight", "3"})};
  workers.push_back(job.start({"--first-weight", "4"}));
  workers.push_back(job.start({}));
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  check_all(job, workers, alone({"--first-weight", "3"}));
  // weights, losses and running; and the progress
  CHECK(job.worlds.at(0).transfer_bytes > 80);
}

TEST_CASE("a world grows from one to three while it trains") {
  Job job(twelve);
  std::vector<WorkerId> workers = job.form(1, {"--hold", "compute:5"});
  job.until_line(workers[0], "holding");
  workers.push_back(job.start({}));
  workers.push_back(job.start({}));
  job.until_ready(workers);
  job.change({workers[1], workers[2]});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.until_all_ended();
  check_all(job, workers, alone());
  CHECK(job.has_line(workers[0], "applied 1 5 1"));
  CHECK(job.has_line(workers[0], "applied 2 6 3"));
  CHECK(job.said(workers[2], "computed ").starts_with("2 17"));
  REQUIRE(job.worlds.size() == 2);
  CHECK(job.worlds[1].planned);
  CHECK(job.worlds[1].step == StepId(6));
  CHECK(job.worlds[1].idle_ns >= 0);
  CHECK(job.worlds[1].transfer_ns > 0);
}

TEST_CASE("a world shrinks from three to one, and rank 0 leaves as well") {
  Job job(twelve);
  const auto workers = job.form(3, {"--hold", "compute:5"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  job.change({}, {workers[0], workers[1]});
  job.until_going(Generation(2));
  for (const WorkerId worker : workers) job.let_go(worker);
  job.until_all_ended();
  check_all(job, {workers[2]}, alone());
  for (const WorkerId worker : {workers[0], workers[1]}) {
    CHECK(job.said(worker, "evicted ") == "left the world by decision");
    CHECK(job.exit_of(worker).code == 0);
    CHECK(final_figures(job.lines(worker)).empty());
  }
  CHECK(job.has_line(workers[2], "applied 2 6 1"));
}

TEST_CASE("all members of the first world are replaced, one by one") {
  Job job(twelve);
  // The newest member holds up the others, which wait for it in the reduction.
  std::vector<WorkerId> all{job.start({}), job.start({"--hold", "compute:1"})};
  job.until_ready(all);
  job.change(all);
  for (std::int64_t step = 1; step <= 13; step += 4) {
    const WorkerId oldest = all[all.size() - 2], newest = all.back();
    job.until_line(newest, "holding " + std::to_string(step));
    all.push_back(job.start({"--hold", "compute:" + std::to_string(step + 4)}));
    job.until_ready({all.back()});
    job.change({all.back()}, {oldest});
    job.until_going(Generation(static_cast<std::uint64_t>(2 + step / 4)));
    job.let_go(newest);
  }
  job.until_line(all.back(), "holding 17");
  job.let_go(all.back());
  job.until_all_ended();
  check_all(job, {all[4], all[5]}, alone());
  CHECK(job.worlds.size() == 5);
  for (const auto& world : job.worlds) CHECK(world.world.members.size() == 2);
}

TEST_CASE("when all members are to leave, one stays and brings its state to the newcomers") {
  Job job(twelve);
  const auto old = job.form(2, {"--hold", "compute:5"});
  for (const WorkerId worker : old) job.until_line(worker, "holding");
  const std::vector<WorkerId> fresh{job.start({"--hold", "compute:8"}), job.start({})};
  job.until_ready(fresh);
  job.change(fresh, old);
  job.until_going(Generation(2));
  for (const WorkerId worker : old) job.let_go(worker);
  job.until_line(fresh[0], "holding");
  job.change({}, old);
  REQUIRE(job.worlds.size() == 2);
  CHECK(job.worlds[1].world.members.size() == 3);
  job.until_going(Generation(3));
  job.let_go(fresh[0]);
  job.until_all_ended();
  check_all(job, fresh, alone());
  for (const WorkerId worker : old) CHECK(job.has_line(worker, "evicted "));
}

TEST_CASE("with more workers than samples in a step, some have an empty share") {
  Job job({.global_batch = 2});
  const Job::Arguments short_run{"--samples", "7", "--epochs", "4"};
  const auto workers = job.form(5, short_run);
  job.until_all_ended();
  check_lineage(job.all_lines(), 7, 4);
  Job::Arguments reference = short_run;
  reference.insert(reference.end(), {"--batch", "2"});
  const auto expected = final_figures(run_alone(reference));
  for (const WorkerId worker : workers) {
    check_close(final_figures(job.lines(worker)), expected);
    CHECK(job.exit_of(worker).code == 0);
  }
  CHECK_FALSE(job.has_line(workers[4], "computed"));
  CHECK(job.has_line(workers[4], "applied 1 15 5"));
}

TEST_CASE("shares may be unequal or empty, and a change may give the same members another plan") {
  Job job({.global_batch = 12, .weights = {8, 4, 0}});
  const auto workers = job.form(3, {"--hold", "compute:5"});
  for (const std::size_t rank : {0, 1}) job.until_line(workers[rank], "holding");
  job.change({});
  job.until_going(Generation(2));
  for (const std::size_t rank : {0, 1}) job.let_go(workers[rank]);
  job.until_all_ended();
  check_all(job, workers, alone());
  CHECK_FALSE(job.has_line(workers[2], "computed"));
  CHECK(job.has_line(workers[2], "applied 2 "));
  REQUIRE(job.worlds.size() == 2);
  CHECK(job.worlds[1].planned);
  CHECK(job.worlds[1].transfer_bytes == 0);
}

TEST_CASE("shares are split by weight and computed in micro-batches") {
  Job job({.global_batch = 12, .micro_batch = 4, .weights = {3, 1}, .lr_factor = 0.5});
  const auto workers = job.form(2, {"--micro-batch", "5"});
  job.until_all_ended();
  check_all(job, workers, alone({"--base-batch", "24"}));
  std::size_t computed = 0, applied = 0;
  for (const std::string& line : job.lines(workers[0])) {
    computed += line.starts_with("computed ");
    applied += line.starts_with("applied ");
  }
  CHECK(applied == 18);
  CHECK(computed == 16 * 3 + 2);  // nine samples as 3, 3, 3; and three of the last four
}

TEST_CASE("epochs end on every member, once") {
  Job job(twelve);
  std::vector<WorkerId> workers = job.form(2, {"--hold", "compute:8"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  workers.push_back(job.start({}));
  job.until_ready(workers);
  job.change({workers[2]}, {workers[0]});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.let_go(workers[1]);
  job.until_all_ended();
  check_all(job, {workers[1], workers[2]}, alone());
  // The world does not change at the end of the first epoch: the world that trained it ends it.
  CHECK(job.said(workers[0], "epoch 1 ") == "0 2 1");
  CHECK(job.said(workers[1], "epoch 1 ") == "1 2 1");
  CHECK(job.has_line(workers[0], "applied 1 9 2"));
  CHECK(job.said(workers[1], "epoch 2 ") == "0 2 2");
  CHECK(job.said(workers[2], "epoch ") == "2 1 2 2");
  CHECK(times_said(job, "epoch 1 ") == 2);
  CHECK(times_said(job, "epoch 2 ") == 2);
}

TEST_CASE("a world that changes where each step is an epoch ends that epoch twice") {
  Job job(twelve);
  const Job::Arguments short_epochs{"--samples", "12", "--epochs", "8"};
  Job::Arguments holding = short_epochs;
  holding.insert(holding.end(), {"--hold", "compute:3"});
  std::vector<WorkerId> workers = job.form(1, holding);
  job.until_line(workers[0], "holding");
  workers.push_back(job.start(short_epochs));
  job.until_ready(workers);
  job.change({workers[1]});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.until_all_ended();
  check_lineage(job.all_lines(), 12, 8);
  for (const WorkerId worker : workers)
    check_close(final_figures(job.lines(worker)), alone(short_epochs));
  REQUIRE(job.worlds.size() == 2);
  CHECK(job.worlds[1].step == StepId(4));
  for (std::int64_t epoch = 1; epoch <= 8; ++epoch)
    CHECK(times_said(job, "saved " + std::to_string(epoch)) == (epoch == 4 ? 2 : 1));
}

TEST_CASE("state that is changed where the other workers do not change it is refused") {
  struct Case {
    const char* where;
    const char* why;
  };
  for (const auto& [where, why] :
       {Case{"epoch", " changed 'weights', but it may be called again"},
        Case{"between", "train: 'weights' changed since the last call of train"}}) {
    CAPTURE(std::string(where));
    Job job(twelve);
    const auto workers = job.form(1, {"--calls", "2", "--change", where});
    job.until_all_ended();
    CHECK(job.exit_of(workers[0]).code == 1);
    const std::string said = job.said(workers[0], "failed ");
    CHECK(said.find(why) != std::string::npos);
    CHECK(said.find("step.ends_epoch()") != std::string::npos);
  }
}

TEST_CASE("calls of train follow each other, and a newcomer skips those that are over") {
  Job job(twelve);
  std::vector<WorkerId> workers = job.form(2, {"--calls", "3", "--hold", "compute:20"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  workers.push_back(job.start({"--calls", "3"}));
  job.until_ready(workers);
  job.change({workers[2]});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.let_go(workers[1]);
  job.until_all_ended();
  check_lineage(job.all_lines(), samples, 3 * epochs);
  REQUIRE(job.trained.size() == 3);
  CHECK(job.trained[2].call == 3);
  const auto reference = run_alone({"--calls", "3", "--batch", "12"});
  for (const int call : {1, 2, 3})
    for (const WorkerId worker : {workers[0], workers[1]})
      check_close(final_figures(job.lines(worker), call), final_figures(reference, call));
  for (const int call : {2, 3})
    check_close(final_figures(job.lines(workers[2]), call), final_figures(reference, call));
  CHECK(job.has_line(workers[2], "final 1 "));
  for (const WorkerId worker : workers) CHECK(job.exit_of(worker).code == 0);
}

TEST_CASE("a change that has not happened before the end is cancelled") {
  Job job(twelve);
  std::vector<WorkerId> workers = job.form(1, {"--hold", "applied:17"});
  job.until_line(workers[0], "holding");
  const WorkerId late = job.start({});
  job.until_ready({late});
  job.change({late});
  job.until_going(Generation(2));
  job.let_go(workers[0]);
  job.until("the worker has ended", [&] { return !job.trained.empty(); });
  REQUIRE(job.changes.size() == 2);
  CHECK(job.changes[1].how == rendezvous::ChangeEnded::How::refused);
  CHECK(job.changes[1].reason == "training is over");
  job.kill(late);
  job.until_all_ended();
  check_all(job, workers, alone());
}

TEST_CASE("AdaScale's factor is the same on all ranks, in worlds that grow and break") {
  Job job({.global_batch = 12, .noise_base = 4, .adascale = true});
  auto workers = job.form(2, {"--hold", "compute:5"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  workers.push_back(job.start({"--hold", "compute:9"}));
  job.until_ready({workers[2]});
  job.change({workers[2]});
  job.until_going(Generation(2));
  for (const WorkerId worker : {workers[0], workers[1]}) job.let_go(worker);
  job.until_line(workers[2], "holding");
  job.until("all have entered it", [&] { return job.worlds.size() == 2; });
  job.kill(workers[0]);
  job.until("it is dead", [&] { return job.exit_of(workers[0]).signal != 0; });
  job.let_go(workers[2]);
  job.until_all_ended();
  // The last messages may arrive after their senders have ended.
  job.until("the world was formed anew", [&] { return job.worlds.size() == 3; });
  check_lineage(job.all_lines(), samples, epochs);
  // Equal to the last bit, because the factors came from the same reductions.
  CHECK(final_figures(job.lines(workers[1])).size() == 10);
  CHECK(final_figures(job.lines(workers[1])) == final_figures(job.lines(workers[2])));
  CHECK(final_figures(job.lines(workers[1])) != alone());
}

TEST_CASE("rank 0 reports the gradient noise where the plan asks for it") {
  Job job({.global_batch = 12, .noise_base = 4});
  const auto workers = job.form(2, {"--hold", "applied:7"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  job.until("seven steps are told", [&] {
    return !job.samples.empty() && std::ranges::any_of(job.samples, [](const wire::Sample& sample) {
      return !sample.noise.empty() && sample.noise.front().steps == 7;
    });
  });
  std::int64_t told = 0;
  for (const wire::Sample& sample : job.samples) {
    if (sample.noise.empty()) continue;
    REQUIRE(sample.noise.size() == 1);
    const Noise& noise = sample.noise.front();
    told += sample.steps;
    CHECK(noise.steps == told);
    CHECK(noise.variance > 0);
    CHECK_FALSE(noise.biased);
    // A step of three base batches is worth one to three steps of one.
    const auto steps = static_cast<double>(told);
    CHECK(noise.scale_invariant_steps >= steps);
    CHECK(noise.scale_invariant_steps <= 3 * steps);
  }
  CHECK(told == 7);
  for (const WorkerId worker : workers) job.let_go(worker);
  job.until_all_ended();
  // The linear factor is 1 here, and measuring alone changes nothing.
  check_all(job, workers, alone());
}

TEST_CASE("samples report what a worker does, even while it is stuck") {
  Job job(twelve);
  const auto workers = job.form(1, {"--hold", "compute:4"});
  job.until_line(workers[0], "holding");
  const auto seen = [&](const std::function<bool(const wire::Sample&)>& f) {
    return std::count_if(job.samples.begin(), job.samples.end(), f) > 0;
  };
  job.until("a sample of the hold", [&] {
    return seen([](const wire::Sample& s) {
      return s.phase == "compute" && s.waiting_ns > 30'000'000 && s.step == StepId(4) &&
             s.generation == Generation(1) && s.steps == 0;
    });
  });
  std::int64_t steps = 0, own = 0;
  for (const wire::Sample& sample : job.samples) {
    steps += sample.steps;
    own += sample.samples;
    CHECK(sample.wall_ns >= sample.compute_ns + sample.reduce_ns);
  }
  CHECK(steps == 4);
  CHECK(own == 48);
  job.let_go(workers[0]);
  job.until_all_ended();
}

TEST_CASE("figures in another order stop all workers before one uses their sums") {
  for (const char* other : {"ba", "ac", "b"}) {
    CAPTURE(std::string(other));
    Job job(twelve);
    const std::vector<WorkerId> workers{job.start({"--names", "ab"}), job.start({"--names", other}),
                                        job.start({"--names", "ab"})};
    job.until_ready(workers);
    job.change(workers);
    job.until_all_ended();
    for (const WorkerId worker : workers) {
      CHECK(job.exit_of(worker).code == 1);
      CHECK(job.has_line(worker, "failed step.sum: "));
      CHECK_FALSE(job.has_line(worker, "applied"));
    }
    CHECK(job.has_line(workers[1], std::string("failed step.sum: '") +
                                       (other[0] == 'a' ? other[1] : other[0]) + "' stands where"));
  }
}

}  // namespace
}  // namespace elasticrun::engine_test
