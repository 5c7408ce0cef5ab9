// What Slurm is asked for, with programs in the place of Slurm's.
#include "launcher/srun/shrink.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "launcher/executors/hook_process.hpp"

using namespace elasticrun;

namespace {

// squeue and scontrol as functions of the shell that runs the command.
launcher::executors::HookAnswer asked(const std::string& go, const std::string& queue) {
  const std::string command = fmt::format(
      "squeue() {{ {}; }}\n"
      "scontrol() {{ if [ $1 = show ]; then printf '%s\\n' $3; else echo \"$@\"; fi; }}\n{}",
      queue, launcher::srun::shrink_command("7"));
  return launcher::executors::run_hook({command, std::chrono::seconds(20)}, go);
}

}  // namespace

TEST_CASE("all nodes are kept but those that go") {
  const auto answer = asked("n2\nn10\n", "echo n1 n2 n10 n20");
  REQUIRE(answer.output.has_value());
  CHECK(*answer.output == "update JobId=7 NodeList=n1,n20\n");
}

TEST_CASE("nothing to give back is not asked for") {
  const auto answer = asked("", "echo n1");
  REQUIRE(answer.output.has_value());
  CHECK(answer.output->empty());
}

TEST_CASE("a queue that does not answer does not mean that all nodes go") {
  CHECK_FALSE(asked("n2\n", "false").output.has_value());
  CHECK_FALSE(asked("n1\n", "echo n1").output.has_value());
}
