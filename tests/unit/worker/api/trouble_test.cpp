// Workers that die, fail or lose their agent at any place in a step. The survivors must end with
// the same weights as an undisturbed run.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <set>

#include "job.hpp"
#include "oracle.hpp"

namespace elasticrun::engine_test {
namespace {

constexpr std::int64_t samples = 100, epochs = 2;
const BatchPlan twelve{.global_batch = 12};

const std::vector<double>& undisturbed() {
  static const std::vector<double> figures = final_figures(run_alone({"--batch", "12"}));
  return figures;
}

// Checks that some rank 0 completed on_epoch for every epoch.
void check_saved(const Job& job) {
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    CAPTURE(epoch);
    const std::string saved = "saved " + std::to_string(epoch);
    CHECK(std::ranges::any_of(
        job.all_lines(), [&](const auto& lines) { return std::ranges::count(lines, saved) > 0; }));
  }
}

void check_survivors(const Job& job, const std::vector<WorkerId>& survivors) {
  check_lineage(job.all_lines(), samples, epochs);
  check_saved(job);
  for (const WorkerId worker : survivors) {
    CHECK(job.exit_of(worker).code == 0);
    CHECK(job.exit_of(worker).signal == 0);
    check_close(final_figures(job.lines(worker)), undisturbed());
  }
}

std::vector<WorkerId> form_with_victim(Job& job, int size, int rank, const std::string& place,
                                       const std::string& fault = "--die") {
  std::vector<WorkerId> workers;
  for (int i = 0; i < size; ++i)
    workers.push_back(job.start(i == rank ? Job::Arguments{fault, place} : Job::Arguments{}));
  job.until_ready(workers);
  job.change(workers);
  return workers;
}

TEST_CASE("a member dies in a step") {
  // computed: the victim has computed its share, and the others wait for it in the reduction.
  for (const char* place : {"compute:0", "compute:7", "computed:8", "apply:7", "applied:8",
                            "apply:17", "epoch:1", "epoch:2"})
    for (const int rank : {0, 2}) {
      CAPTURE(std::string(place));
      CAPTURE(rank);
      Job job(twelve);
      auto workers = form_with_victim(job, 3, rank, place);
      job.until_all_ended();
      const WorkerId victim = workers[static_cast<std::size_t>(rank)];
      CHECK(job.exit_of(victim).signal == SIGKILL);
      std::erase(workers, victim);
      check_survivors(job, workers);
      // In step 0 it may die before all members have entered the first world.
      REQUIRE(!job.worlds.empty());
      CHECK(job.worlds.size() <= 2);
      CHECK_FALSE(job.worlds.back().planned);
      CHECK(job.worlds.back().world.members.size() == 2);
    }
}

TEST_CASE("rank 0 dies after the end of an epoch: on_epoch runs once more on all survivors") {
  for (const char* place : {"compute:9", "epoch:2"}) {
    CAPTURE(std::string(place));
    Job job(twelve);
    const auto workers = form_with_victim(job, 3, 0, place);
    job.until_all_ended();
    check_survivors(job, {workers[1], workers[2]});
    const std::string epoch = place == std::string("epoch:2") ? "2" : "1";
    for (const int rank : {1, 2}) {
      const auto& lines = job.lines(workers[static_cast<std::size_t>(rank)]);
      const auto in = [&](const std::string& world) {
        return std::ranges::count_if(lines, [&](const std::string& line) {
          return line.starts_with("epoch " + epoch + " ") && line.ends_with(world);
        });
      };
      CHECK(in(" 3 1") <= 1);
      CHECK(in(" 2 2") == 1);
    }
  }
}

TEST_CASE("a member is killed inside the reduction") {
  Job job(twelve);
  const WorkerId slow = job.start({"--hold", "compute:6"});
  const WorkerId victim = job.start({});
  const WorkerId third = job.start({});
  job.until_ready({slow, victim, third});
  job.change({slow, victim, third});
  job.until_line(slow, "holding");
  std::set<WorkerId> reducing;
  job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
    if (const auto* sample = std::get_if<wire::Sample>(&message))
      if (sample->phase == "reduce" && sample->step == StepId(6)) reducing.insert(from);
  };
  job.until("both reduce", [&] { return reducing.size() == 2; });
  job.kill(victim);
  // The slow member still computes, but its answer must reach the controller already.
  bool answered = false;
  job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
    const auto* answer = std::get_if<wire::Answer>(&message);
    if (answer && from == slow) answered = answer->committed == StepId(6);
  };
  job.until("the slow one answers", [&] { return answered; });
  job.let_go(slow);
  job.until_all_ended();
  check_survivors(job, {slow, third});
}

TEST_CASE("an abort inside apply is answered when the step is complete") {
  Job job(twelve);
  const auto workers = job.form(3, {"--hold", "apply:6"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  std::map<WorkerId, StepId> answers;
  job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
    const auto* answer = std::get_if<wire::Answer>(&message);
    if (answer) answers.emplace(from, answer->committed);
  };
  job.kill(workers[0]);
  job.until("it is gone", [&] { return job.exit_of(workers[0]).signal != 0; });
  job.until_heard();
  CHECK(answers.empty());
  job.let_go(workers[1]);
  job.let_go(workers[2]);
  job.until("both answer", [&] { return answers.size() == 2; });
  for (const auto& [worker, committed] : answers) CHECK(committed == StepId(7));
  job.until_all_ended();
  check_survivors(job, {workers[1], workers[2]});
}

TEST_CASE("all members but one die, one after the other, and the last one finishes") {
  Job job(twelve);
  const std::vector<WorkerId> workers{job.start({"--die", "compute:3"}),
                                      job.start({"--die", "apply:6"}),
                                      job.start({"--die", "computed:6"}), job.start({})};
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  check_survivors(job, {workers[3]});
}

TEST_CASE("twenty random schedules of deaths, in pieces and unequal shares") {
  const std::vector<std::string> places{"compute", "computed", "computed", "apply", "applied"};
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 chance(seed);
    const auto below = [&](int n) { return static_cast<int>(chance() % static_cast<unsigned>(n)); };
    Job job({.global_batch = 12, .micro_batch = below(4)});
    std::vector<WorkerId> workers, survivors;
    for (int i = 0; i < 5; ++i) {
      const bool dies = i < 3;
      const std::string place =
          places[static_cast<std::size_t>(below(5))] + ":" + std::to_string(1 + below(14));
      workers.push_back(job.start(dies ? Job::Arguments{"--die", place} : Job::Arguments{}));
      if (!dies) survivors.push_back(workers.back());
    }
    job.until_ready(workers);
    std::ranges::shuffle(workers, chance);
    job.change(workers);
    job.until_all_ended();
    check_survivors(job, survivors);
    CHECK(final_figures(job.lines(survivors[0])) == final_figures(job.lines(survivors[1])));
  }
}

TEST_CASE("a worker dies while the next world is being prepared") {
  for (const bool newcomer_dies : {true, false}) {
    CAPTURE(newcomer_dies);
    Job job(twelve);
    std::vector<WorkerId> workers = job.form(2, {"--hold", "compute:5"});
    for (const WorkerId worker : workers) job.until_line(worker, "holding");
    workers.push_back(job.start({}));
    job.until_ready(workers);
    const WorkerId victim = newcomer_dies ? workers[2] : workers[1];
    bool killed = false;
    job.on_message = [&](WorkerId from, const wire::FromWorker& message) {
      if (!std::holds_alternative<wire::Publish>(message) || from != victim) return;
      job.kill(victim);
      killed = true;
    };
    job.change({workers[2]});
    job.until("it is killed", [&] { return killed; });
    for (const WorkerId worker : {workers[0], workers[1]})
      if (worker != victim) job.let_go(worker);
    job.until("somebody has trained", [&] { return !job.trained.empty(); });
    std::erase(workers, victim);
    if (newcomer_dies) CHECK(job.worlds.size() == 1);
    job.until_all_ended();
    check_survivors(job, workers);
  }
}

TEST_CASE("a worker dies between Go and the switch") {
  for (const bool newcomer_dies : {true, false}) {
    CAPTURE(newcomer_dies);
    Job job(twelve);
    std::vector<WorkerId> workers = job.form(2, {"--hold", "compute:5"});
    for (const WorkerId worker : workers) job.until_line(worker, "holding");
    workers.push_back(job.start({}));
    job.until_ready(workers);
    job.change({workers[2]});
    job.until_going(Generation(2));
    const WorkerId victim = newcomer_dies ? workers[2] : workers[1];
    job.kill(victim);
    job.until_going(Generation(3));  // prepared while the other workers hold
    for (const WorkerId worker : {workers[0], workers[1]})
      if (worker != victim) job.let_go(worker);
    job.until_all_ended();
    std::erase(workers, victim);
    check_survivors(job, workers);
  }
}

TEST_CASE("rank 0 dies before the first step, and its weights are used nevertheless") {
  Job job(twelve);
  const std::vector<WorkerId> workers{job.start({"--hold", "compute:0", "--first-weight", "3"}),
                                      job.start({}), job.start({})};
  job.until_ready(workers);
  job.change(workers);
  job.until("all have its weights", [&] { return job.worlds.size() == 1; });
  job.kill(workers[0]);
  job.until_all_ended();
  check_lineage(job.all_lines(), samples, epochs);
  const auto expected = final_figures(run_alone({"--batch", "12", "--first-weight", "3"}));
  check_close(final_figures(job.lines(workers[1])), expected);
  check_close(final_figures(job.lines(workers[2])), expected);
}

TEST_CASE("a callback that throws ends its worker, and the others continue") {
  for (const char* place : {"compute:4", "apply:4", "epoch:1"}) {
    CAPTURE(std::string(place));
    Job job(twelve);
    const auto workers = form_with_victim(job, 3, 1, place, "--throw");
    job.until_all_ended();
    CHECK(job.exit_of(workers[1]).code == 1);
    CHECK(job.said(workers[1], "failed ") == std::string("told to throw at ") + place);
    check_survivors(job, {workers[0], workers[2]});
  }
}

TEST_CASE("a worker whose agent is gone ends with an error") {
  Job job(twelve);
  const auto workers = job.form(2, {"--hold", "compute:5"});
  for (const WorkerId worker : workers) job.until_line(worker, "holding");
  job.hang_up(workers[0]);
  job.let_go(workers[0]);
  job.until_line(workers[0], "failed the agent is gone");
  job.let_go(workers[1]);
  job.until_all_ended();
  CHECK(job.exit_of(workers[0]).code == 1);
  check_survivors(job, {workers[1]});
}

TEST_CASE("a newcomer with other options is rejected, and the world continues") {
  for (const char* option : {"--samples", "--epochs"}) {
    CAPTURE(std::string(option));
    Job job(twelve);
    std::vector<WorkerId> workers = job.form(2, {"--hold", "compute:5"});
    for (const WorkerId worker : workers) job.until_line(worker, "holding");
    const WorkerId stranger = job.start({option, "99"});
    job.until_ready({stranger});
    job.change({stranger});
    job.until_going(Generation(2));
    for (const WorkerId worker : workers) job.let_go(worker);
    job.until_all_ended();
    CHECK(job.exit_of(stranger).code == 1);
    CHECK(job.said(stranger, "failed ").starts_with("train: the workers do not agree"));
    check_survivors(job, workers);
  }
}

TEST_CASE("workers with different samples do not start, even if their hashes are similar") {
  Job job(twelve);
  // The hashes of their options have the first 20 bits in common.
  const std::vector<WorkerId> workers = {job.start({"--samples", "100"}),
                                         job.start({"--samples", "1781907"})};
  job.until_ready(workers);
  job.change(workers);
  job.until_all_ended();
  for (const WorkerId worker : workers) {
    CHECK(job.exit_of(worker).code == 1);
    CHECK(job.said(worker, "failed ").starts_with("train: the workers do not agree"));
  }
}

}  // namespace
}  // namespace elasticrun::engine_test
