// The command line of a step, and the lines that srun writes.
#include "launcher/srun/step.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace elasticrun::launcher::srun;

namespace {

// From "srun" on.
std::string command(const std::vector<std::string>& words) {
  const std::string text = fmt::format("{}", fmt::join(words, " "));
  return text.substr(text.find(" srun ") + 1);
}

const std::string usual =
    "srun --overlap --kill-on-bad-exit=0 --no-kill --wait=0 --mpi=none --ntasks-per-node=1 "
    "--cpu-bind=none --export=ALL --chdir=/ --job-name=elasticrun ";

std::string line(std::string_view text) {
  const auto task = task_line(text);
  return task ? fmt::format("{}|{}", task->task, task->text) : "-";
}

std::string there(std::string_view text) {
  const auto agent = agent_there(text, "mark");
  return agent ? fmt::format("{} {}", agent->damaged ? "damaged" : "ready", agent->pid) : "-";
}

std::string ended(std::string_view text) {
  const auto tasks = tasks_ended(text);
  return tasks ? fmt::format("{}: {}", fmt::join(tasks->nodes, " "), tasks->reason) : "-";
}

}  // namespace

TEST_CASE("command lines") {
  Step step{.nodes = {"n1", "n3"}, .agent = "/bin/agent", .copy = "/tmp/a.1", .mark = "mark"};
  CHECK(command(start_arguments(step)) ==
        usual +
            "--nodes=2 --ntasks=2 --nodelist=n1,n3 --label --bcast=/tmp/a.1 /bin/agent --ready "
            "mark");
  step.component = 1;
  step.wrap = "numactl -N 0";
  CHECK(command(start_arguments(step)) ==
        usual +
            "--het-group=1 --nodes=2 --ntasks=2 --nodelist=n1,n3 --label /bin/sh -c exec "
            "numactl -N 0 \"$0\" \"$@\" /bin/agent --ready mark");
  CHECK(command(script_arguments("n3", -1, "kill 7")) ==
        usual + "--nodes=1 --ntasks=1 --nodelist=n3 /bin/sh -c kill 7");
  CHECK(start_arguments(step)[0] == "-u");
}

TEST_CASE("lines of tasks") {
  CHECK(line("0: text: more") == "0|text: more");
  CHECK(line("012: ") == "12|");
  CHECK(line(" 3: x") == "3|x");
  CHECK(line("3:") == "3|");
  for (const char* other : {"", "srun: error: n1", "text", "-1: x", "70000: x", "1x: x"})
    CHECK(line(other) == "-");
}

TEST_CASE("an agent is there") {
  CHECK(there("mark ready 0 1234") == "ready 1234");
  CHECK(there("mark damaged 0 1234") == "damaged 1234");
  for (const char* other :
       {"", "mark", "mark ready 0 ", "mark ready 0 1", "mark ready 0 -5", "other ready 0 1234"})
    CHECK(there(other) == "-");
  CHECK_FALSE(agent_there(" ready 0 12", ""));
}

TEST_CASE("tasks have ended, says srun") {
  CHECK(ended("srun: error: node3: task 2: Killed") == "node3: elasticrun-agent: Killed");
  CHECK(ended("srun: error: n[2-3],m1: tasks 1-2,4: Exited with exit code 1") ==
        "n2 n3 m1: elasticrun-agent: Exited with exit code 1");
  CHECK(ended("srun: error: Node failure on node3") ==
        "node3: Slurm says that the node has failed");
  for (const char* other : {"", "node3: task 2: Killed", "srun: error: task 2 launch failed: x",
                            "srun: Job step aborted", "srun: error: -x: task 2: Killed",
                            "srun: error: Unable to create step"})
    CHECK(ended(other) == "-");
}
