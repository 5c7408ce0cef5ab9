// Hook processes: their input, their output, and how each of them ends.
#include "launcher/executors/hook_process.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

using namespace elasticrun;
using namespace elasticrun::launcher::executors;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

// The hook's output, or "! " and the error.
std::string heard(std::string command, std::string input = {}, Duration length = 60s) {
  const HookAnswer heard = run_hook({std::move(command), length, "--patience"}, std::move(input));
  return heard.output ? *heard.output : "! " + heard.output.error().text;
}

// A zombie does not count: whatever reaps orphans may take its time.
bool lives(int pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z";
}

}  // namespace

TEST_CASE("the hook gets its input, and need not read it") {
  CHECK(heard("cat") == "");
  CHECK(heard("cat", "one\ntwo\n") == "one\ntwo\n");
  CHECK(heard("cat", "$HOME `id` \\n \"'\n") == "$HOME `id` \\n \"'\n");
  const std::string much = std::string(300000, 'x') + "\n";
  CHECK(heard("cat", much) == much);
  CHECK(heard("echo deaf", much) == "deaf\n");
  CHECK(heard("exec <&-; echo closed", much) == "closed\n");
  CHECK(heard("head -c 1; exec <&-; echo .", much) == "x.\n");
}

TEST_CASE("the answer is the hook's output, or a precise error") {
  struct Case {
    const char* command;
    const char* heard;
  };
  const Case cases[] = {
      {"exit 7", "! ended with exit code 7"},
      {"echo '{}'; echo no; echo cloud is down >&2; exit 1",
       "! ended with exit code 1: cloud is down"},
      {"kill -9 $PPID", "! was killed by signal 9"},
      {"yes", "! printed more than 1 MiB"},
      {"sleep 1000 & echo done", "done\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.command);
    CHECK(heard(c.command) == c.heard);
  }
  CHECK(heard("echo early; exec sleep 1000", "{}\n", 100ms) ==
        "! took longer than 100 ms (--patience)");
  CHECK(heard("./no-such-program").starts_with("! ended with exit code 127: sh: "));
}

TEST_CASE("a hook process is killed together with its owner") {
  boost::asio::io_context io;
  const fs::path file = fs::temp_directory_path() / fmt::format("hooked.{}", ::getpid());
  bool answered = false;
  std::optional<HookProcess> program;
  program.emplace(
      io,
      Hook{fmt::format("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.string()), 60s});
  program->run({}, [&](HookAnswer) { answered = true; });
  while (!fs::exists(file)) io.run_for(1ms);
  int pid = 0;
  std::ifstream(file) >> pid;
  fs::remove(file);
  CHECK(lives(pid));
  program.reset();
  io.run();
  while (lives(pid)) std::this_thread::sleep_for(1ms);
  CHECK_FALSE(answered);
}
