// The commands for a remote shell, and the parsing of its answers. The integration tests show that
// they work with a real shell over a real sshd.
#include "launcher/ssh/bootstrap.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace elasticrun::launcher::ssh {
namespace {

const Bootstrap bootstrap{"elasticrun-0123", "cafe", "Linux x86_64", 77};

TEST_CASE("every login shell reads the commands as one word in single quotes") {
  for (const std::string& command :
       {find_agent_command(bootstrap, 1), copy_agent_command(bootstrap, 2)}) {
    REQUIRE(command.starts_with("exec sh -c '"));
    REQUIRE(command.ends_with("'"));
    const std::string word = command.substr(12, command.size() - 13);
    for (const char c : {'\'', '\\', '!', '\n'}) CHECK(word.find(c) == std::string::npos);
    CHECK(command.find("m=elasticrun-0123; h=cafe; y=\"Linux x86_64\"; z=77;") !=
          std::string::npos);
  }
  CHECK(find_agent_command(bootstrap, 3).find("c=3;") != std::string::npos);
}

TEST_CASE("the agent is started inside the command of --wrap") {
  CHECK(find_agent_command(bootstrap, 1).find("exec  \"$f\"") != std::string::npos);
  Bootstrap wrapped = bootstrap;
  wrapped.wrap = "numactl -N 0";
  CHECK(find_agent_command(wrapped, 1).find("exec numactl -N 0 \"$f\" --ready") !=
        std::string::npos);
  CHECK(start_agent_command(bootstrap).starts_with("exec ~/.cache/elasticrun/agent-"));
  CHECK(end_agent_command(bootstrap, 5) == "exec sh -c 'kill -CONT 5; kill -40 5'");
  CHECK(end_agent_command(wrapped, 5).find("er-watchdog") != std::string::npos);
}

std::optional<Answer> answer_in(std::string_view printed, std::string* rest = nullptr) {
  std::string_view after;
  const auto answer = find_answer(printed, bootstrap.mark, after);
  if (rest) *rest = std::string(after);
  return answer;
}

TEST_CASE("answers are found in the output of a login shell") {
  std::string rest;
  const auto found = answer_in("Welcome!\nhalf a line\nelasticrun-0123 found 2 4711\nmore", &rest);
  REQUIRE(found);
  CHECK(found->what == Answer::What::found);
  CHECK(found->place == 2);
  CHECK(found->pid == 4711);
  CHECK(rest == "more");

  const auto foreign = answer_in("elasticrun-0123 foreign 0 0 Linux riscv64\n");
  REQUIRE(foreign);
  CHECK(foreign->what == Answer::What::foreign);
  CHECK(foreign->text == "Linux riscv64");

  const auto nowhere = answer_in("elasticrun-0123 nowhere 0 0 /home/a (mounted noexec) \n");
  REQUIRE(nowhere);
  CHECK(nowhere->what == Answer::What::nowhere);
  CHECK(nowhere->text == "/home/a (mounted noexec)");

  const auto stream =
      answer_in("half\nelasticrun-0123 stream 0 0 a: refused; b: silent\n\x01", &rest);
  REQUIRE(stream);
  CHECK(stream->what == Answer::What::stream);
  CHECK(stream->text == "a: refused; b: silent");
  CHECK(rest == "\x01");

  CHECK(answer_in("elasticrun-0123 ready 0 7\n")->what == Answer::What::ready);
  CHECK(answer_in("elasticrun-0123 damaged 0 7\n")->what == Answer::What::damaged);
  CHECK(answer_in("elasticrun-0123 copy 1 0\n")->what == Answer::What::copy);
  CHECK(answer_in("elasticrun-0123 copied 1 0\n")->what == Answer::What::copied);
  CHECK(answer_in("elasticrun-0123 failed 1 0 /a b\n")->text == "/a b");
}

TEST_CASE("other output is not taken for an answer") {
  for (const char* printed :
       {"", "\n\n", "elasticrun-0123 ready 2 4711", "elasticrun-9999 ready 2 4711\n",
        "x elasticrun-0123 ready 2 4711\n", "elasticrun-0123\n", "elasticrun-0123 ready\n",
        "elasticrun-0123 ready one 4711\n", "elasticrun-0123 stolen 1 2\n"})
    CHECK_MESSAGE(!answer_in(printed), printed);
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
