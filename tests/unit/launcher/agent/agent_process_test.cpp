// A real agent with real workers: how they start, what they get, and what is reported about them.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <cstdlib>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "controller.hpp"
#include "net/dial.hpp"
#include "wire/codec.hpp"

namespace elasticrun::launcher::agent {
namespace {

TEST_CASE("exit codes, signals and programs that cannot run are reported") {
  Controller c;
  MESSAGE("agent up after " << milliseconds(c.up_after) << " ms");
  c.shell(1, "exit 7");
  c.shell(2, "kill -SEGV $$");
  c.start(3, {"./train"});
  c.start(4, {"no-such-program-anywhere"});
  c.start(5, {"/etc/passwd"});
  c.start(6, {"/"});
  c.start(7, {});
  CHECK(c.finished(1).code == 7);
  CHECK(c.finished(1).pid > 0);
  CHECK(c.finished(2).signal == SIGSEGV);
  CHECK(c.finished(3).code == 127);
  CHECK(c.finished(3).reason == "n1: program './train' not found");
  CHECK(c.finished(4).code == 127);
  CHECK(c.finished(4).reason == "n1: program 'no-such-program-anywhere' not found");
  CHECK(c.finished(5).code == 126);
  CHECK(c.finished(5).reason == "n1: program '/etc/passwd' cannot be run: Permission denied");
  CHECK(c.finished(6).code == 126);
  CHECK(c.finished(7).code == 127);
}

TEST_CASE("a script without an interpreter is reported as such") {
  Controller c;
  const auto dir = std::filesystem::temp_directory_path() / fmt::format("scripts-{}", ::getpid());
  std::filesystem::create_directory(dir);
  const auto script = [&](const char* name, const char* text) {
    std::ofstream(dir / name) << text;
    std::filesystem::permissions(dir / name, std::filesystem::perms::owner_all);
    return (dir / name).string();
  };
  c.start(1, {script("bare", "echo hello\n")});
  c.start(2, {script("bad", "#!/no/such/shell\n")});
  CHECK(c.finished(1).code == 126);
  CHECK(c.finished(1).reason.find("Exec format error") != std::string::npos);
  CHECK(c.finished(2).code == 126);
  CHECK(c.finished(2).reason.find("its interpreter is missing") != std::string::npos);
  std::filesystem::remove_all(dir);
}

TEST_CASE("a worker gets a clean process") {
  Controller c;
  c.shell(1,
          "test $ELASTICRUN_PROGRESS_FD = 4 && exec 4>&-;"
          "f=3; while [ $f -lt 256 ]; do [ -e /proc/$$/fd/$f ] && echo leak $f; f=$((f+1)); done;"
          "readlink /proc/self/fd/0; echo $COLOUR; pwd;"
          "grep -E 'SigBlk|SigIgn' /proc/self/status; echo $ELASTICRUN_WORKER");
  CHECK(c.finished(1, "\n1\n").out ==
        "/dev/null\nblue\n/\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n1\n");
  c.shell(2, "test $(ulimit -n) = $(ulimit -H -n) && ps -o pgid= $$ | tr -d ' '; echo $$");
  const std::string& out = c.finished(2).out;
  const std::string pid = std::to_string(c.workers[2].pid);
  CHECK(c.until([&] { return out == pid + "\n" + pid + "\n"; }));
}

TEST_CASE("a missing directory is reported, and the worker runs in the home or root directory") {
  Controller c;
  c.start(1, {"pwd"}, "/no/such/directory");
  WorkerView& worker = c.finished(1, "running in");
  const char* home = std::getenv("HOME");
  const std::string there = home ? home : "/";
  CHECK(c.until([&] { return worker.out == there + "\n"; }));
  CHECK(worker.code == 0);
  CHECK(worker.err ==
        "elasticrun: n1: directory '/no/such/directory': No such file or directory; "
        "running in '" +
            there + "'\n");
}

TEST_CASE("output: both streams arrive, the last line gets its newline, long lines are split") {
  Controller c;
  c.shell(1, "echo out; echo err >&2; printf unfinished");
  WorkerView& one = c.finished(1, "unfinished\n");
  CHECK(c.until([&] { return one.err == "err\n"; }));
  CHECK(one.out == "out\nunfinished\n");
  c.shell(2, "head -c 20000 /dev/zero | tr '\\0' x");
  CHECK(c.finished(2, "x\n").out ==
        std::string(16384, 'x') + " [...]\n" + std::string(20000 - 16384, 'x') + '\n');
  c.shell(3, "printf '\\377\\000\\n'");
  CHECK(c.finished(3, "\n").out == std::string("\xff\0\n", 3));
}

TEST_CASE("a flood of output arrives complete, and does not delay heartbeats") {
  Controller c;
  c.shell(1, "yes 123456789012345678901234567890123456789 | head -c 50000000");
  WorkerView& worker = c.workers[1];
  REQUIRE(c.until([&] { return worker.exited && worker.out.size() >= 50'000'000; }));
  CHECK(worker.out.size() == 50'000'000);
  MESSAGE("longest silence " << milliseconds(c.longest_silence) << " ms at a heartbeat of 50 ms");
  CHECK(c.longest_silence < 1s);
}

TEST_CASE("output of workers still arrives when the job is shut down") {
  Controller c;
  c.shell(1,
          "trap 'echo last words; exit 3' TERM; echo ready; while :; do sleep 1000 & wait; done");
  REQUIRE(c.until([&] { return c.workers[1].out == "ready\n"; }));
  c.send(wire::agent::Shutdown{Duration(10s).count()});
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent has ended");
  CHECK(c.workers[1].out == "ready\nlast words\n");
  CHECK(c.workers[1].code == 3);
}

TEST_CASE("workers get signals and are stopped") {
  Controller c;
  c.shell(1, "trap 'echo usr1' USR1; echo ready; while :; do sleep 1000 & wait; done");
  c.shell(2, "trap '' TERM; echo ready; while :; do sleep 1000; done");
  REQUIRE(c.until([&] { return c.workers[1].out == "ready\n" && c.workers[2].out == "ready\n"; }));
  c.send(wire::agent::SignalWorker{
      WorkerId{2}, SIGUSR1});  // it does not catch the signal, so it does not get it
  c.send(wire::agent::SignalWorker{WorkerId{1}, SIGUSR1});
  REQUIRE(c.until([&] { return c.workers[1].out == "ready\nusr1\n"; }));
  c.send(wire::agent::StopWorker{WorkerId{1}, SIGTERM, Duration(10s).count()});
  CHECK(c.finished(1).signal == SIGTERM);
  c.send(wire::agent::StopWorker{WorkerId{2}, SIGTERM, Duration(50ms).count()});
  CHECK(c.finished(2).signal == SIGKILL);
}

TEST_CASE("that a worker dies is reported before it has ended") {
  Controller c;
  c.start(1, {LIBRARY});
  REQUIRE(c.until([&] { return c.workers[1].out == "connected\n"; }));
  const int shim = parent_of(c.pid_of(1));
  signal_one(shim, SIGSTOP);  // it cannot report the end
  signal_one(c.pid_of(1), SIGKILL);
  REQUIRE(c.until([&] { return c.workers[1].dies; }));
  CHECK(c.workers[1].signal == SIGKILL);
  CHECK(!c.workers[1].exited);
  signal_one(shim, SIGCONT);
  CHECK(c.finished(1).signal == SIGKILL);
}

TEST_CASE("a worker's library reaches the controller through the agent") {
  Controller c;
  c.start(1, {LIBRARY});
  REQUIRE(c.until([&] { return !c.messages.empty(); }));
  CHECK(c.messages[0] == "1: up");
  c.agent->send(WorkerId{1}, "down");
  CHECK(c.until([&] { return c.workers[1].out == "connected\ndown\n"; }));

  const std::string library = LIBRARY;
  c.shell(2, library + " | { read line; exec " + library + "; }");
  CHECK(c.until([&] {
    return c.workers[2].out.find("this worker is connected already") != std::string::npos;
  }));
  c.shell(3, library + " 77");
  CHECK(c.finished(3, "\n").out.find("no such worker runs here") != std::string::npos);
  CHECK(c.messages.size() == 2);
}

TEST_CASE("a library may run in a distant descendant of the program, in another session") {
  Controller c;
  c.shell(1, "(setsid sh -c 'sh -c \"" LIBRARY "; :\"; :' &); exec sleep 1000");
  REQUIRE(c.until([&] { return !c.messages.empty(); }));
  CHECK(c.messages[0] == "1: up");
}

TEST_CASE("a process that a worker did not start cannot speak for it, nor keep its library out") {
  Controller c;
  c.shell(1, "trap 'exec " LIBRARY
             "' USR1; echo $ELASTICRUN_SOCKET; while :; do sleep 1000 & wait; done");
  REQUIRE(c.until([&] { return !c.workers[1].out.empty(); }));
  const std::string path = c.workers[1].out.substr(0, c.workers[1].out.size() - 1);
  std::string answer;
  wire::Hello hello{.protocol = wire::protocol, .role = "worker", .job = "job-1"};
  hello.worker = WorkerId{1};
  const auto dial = net::dial_unix(c.io, path, hello, 20s, [&](Result<net::Greeted> greeted) {
    answer = greeted ? "welcome" : greeted.error().text;
  });
  REQUIRE(c.until([&] { return !answer.empty(); }));
  CHECK(answer.find("was not started by the program of worker 1") != std::string::npos);
  CHECK(c.until(
      [&] { return c.agent_lines.find(answer.substr(answer.rfind(':'))) != std::string::npos; }));
  c.shell(2, LIBRARY " 1");  // nor can another worker
  CHECK(c.finished(2, "\n").out.find("was not started by the program of worker 1") !=
        std::string::npos);
  CHECK(c.messages.empty());

  c.send(wire::agent::SignalWorker{WorkerId{1}, SIGUSR1});
  REQUIRE(c.until([&] { return !c.messages.empty(); }));
  CHECK(c.messages[0] == "1: up");
}

TEST_CASE("an agent that cannot do its work gives the reason and ends") {
  const auto lines_of = [](const std::function<void(executors::AgentStart&)>& change) {
    Controller c(change, false);
    CHECK(c.agent_ended());
    CHECK(c.exit_reason.find("exit code") != std::string::npos);
    return c.agent_lines;
  };
  CHECK(lines_of([](executors::AgentStart& s) { s.version = "0.0.0"; }).find("version") !=
        std::string::npos);
  CHECK(lines_of([](executors::AgentStart& s) { s.key_hex = "12"; }).find("key_hex") !=
        std::string::npos);
  CHECK(lines_of([](executors::AgentStart& s) { s.job = "other"; }).find("cannot reach") !=
        std::string::npos);
  CHECK(lines_of([](executors::AgentStart& s) { s.port = 1; }).find("cannot reach") !=
        std::string::npos);
}

TEST_CASE("the second address is tried when the first does not answer") {
  Controller c(
      [](executors::AgentStart& s) { s.addresses.insert(s.addresses.begin(), "127.0.0.77"); });
  c.shell(1, "exit 0");
  CHECK(c.finished(1).code == 0);
}

TEST_CASE("the executor reports a missing agent program") {
  boost::asio::io_context io;
  std::string reason;
  executors::LocalExecutor executor(io, "/no/such/agent",
                                    {.on_exit = [&](HostId, std::string text) { reason = text; }});
  executor.start({});
  io.run();
  CHECK(reason == "cannot start /no/such/agent: No such file or directory");
}

}  // namespace
}  // namespace elasticrun::launcher::agent
