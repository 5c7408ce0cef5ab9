// Whichever process dies, nothing is left behind: each test kills one process and checks the
// others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "controller.hpp"

namespace elasticrun::launcher::agent {
namespace {

// A worker whose descendant has left its process group, session, parent and environment. Prints the
// descendant's process id.
constexpr const char* daemon_script =
    "(env -i setsid sh -c '(echo $$; trap \"\" TERM HUP INT; while :; do sleep 1000; done)' &);"
    "trap '' TERM; while :; do sleep 1000; done";

bool ended(const net::Fd& process) {
  pollfd waiting{process.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST_CASE("the end of a worker ends all that it has started, and nothing else") {
  Controller c;
  c.shell(1, daemon_script);
  c.shell(2, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  const net::Fd other = c.process_named_by(2);
  c.send(wire::agent::StopWorker{WorkerId{1}, SIGKILL, 0});
  CHECK(c.finished(1).signal == SIGKILL);
  CHECK(gone(daemon));
  c.shell(3, "exit 0");
  c.finished(3);
  CHECK(!c.workers[2].exited);

  signal_one(c.pid_of(2), SIGKILL);  // from outside, and only its main process
  CHECK(c.finished(2).signal == SIGKILL);
  CHECK(gone(other));
}

TEST_CASE("the agent is killed") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  signal_one(c.agent_pid, SIGKILL);
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent ended with exit code 137");
  CHECK(gone(daemon));
  CHECK(c.directory_is_empty());
}

TEST_CASE("the watchdog is killed") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  signal_one(parent_of(c.agent_pid), SIGKILL);
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent was killed by signal 9");
  CHECK(c.workers[1].signal == SIGKILL);
  CHECK(gone(daemon));
  CHECK(c.directory_is_empty());
}

TEST_CASE("agent and watchdog are killed at once: the shims clean up, only the directory stays") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  signal_one(c.agent_pid, SIGSTOP);
  signal_one(parent_of(c.agent_pid), SIGKILL);
  signal_one(c.agent_pid, SIGKILL);
  CHECK(c.agent_ended());
  CHECK(gone(daemon));
  c.remove_what_is_left();
}

TEST_CASE("an agent that is stuck is killed by the launcher, and its watchdog cleans up") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  signal_one(c.agent_pid, SIGSTOP);
  c.executor->kill(HostId{});
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent ended with exit code 137");
  CHECK(gone(daemon));
  CHECK(c.directory_is_empty());
}

TEST_CASE("the launcher's channel breaks: the job continues") {
  Controller c;
  c.shell(1, "echo $$; exec sleep 1000");
  const net::Fd worker = c.process_named_by(1);
  const net::Fd agent = c.process(c.agent_pid);
  c.executor.reset();
  c.shell(2, "exit 5");
  CHECK(c.finished(2).code == 5);
  c.send(wire::agent::Shutdown{Duration(10s).count()});
  CHECK(c.until([&] { return c.agent == nullptr; }));
  CHECK(c.workers[1].signal == SIGTERM);
  CHECK(gone(agent));
}

TEST_CASE("the shim of a worker is killed") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  signal_one(parent_of(c.pid_of(1)), SIGKILL);
  CHECK(c.finished(1).signal == SIGKILL);
  CHECK(gone(daemon));
  c.shell(2, "exit 5");
  CHECK(c.finished(2).code == 5);
}

TEST_CASE("the shim of a worker is stopped: the worker can still be killed") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  const net::Fd worker = c.process(c.pid_of(1));
  const net::Fd shim = c.process(parent_of(c.pid_of(1)));
  signal_one(parent_of(c.pid_of(1)), SIGSTOP);
  c.send(wire::agent::StopWorker{WorkerId{1}, SIGKILL, 0});
  // Both are gone before the timeout for the shim is over, so the next world can form at once.
  REQUIRE(c.until([&] { return ended(worker) && ended(daemon); }));
  WARN(!ended(shim));
  CHECK(c.finished(1).signal == SIGKILL);
  CHECK(gone(shim));
  c.shell(2, "exit 5");
  CHECK(c.finished(2).code == 5);
}

// The file has a write lease, so an open by another process blocks until the owner agrees, as on a
// file server that does not answer.
struct UnansweredFile {
  UnansweredFile() {
    std::ofstream(path) << "#!/bin/sh\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ::signal(SIGIO, SIG_IGN);
    fd = net::Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::fcntl(fd.get(), F_SETLEASE, F_WRLCK) == 0);
  }
  ~UnansweredFile() { std::filesystem::remove(path); }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("leased-{}", ::getpid());
  net::Fd fd;
};

TEST_CASE("a program that cannot even be opened is killed when it has to end") {
  const UnansweredFile file;
  Controller c;
  for (const int signal : {SIGKILL, SIGTERM}) {
    const auto worker = static_cast<std::uint32_t>(signal);
    c.start(worker, {file.path.string()});
    c.send(wire::agent::StopWorker{WorkerId{worker}, signal, Duration(1000s).count()});
    CHECK(c.finished(worker).signal == SIGKILL);
    CHECK(c.workers[worker].pid == 0);
  }
  c.start(1, {file.path.string()});
  c.shell(2, "exit 5");
  CHECK(c.finished(2).code == 5);
  CHECK(!c.workers[1].exited);  // it was not stopped
}

TEST_CASE("the controller's connection breaks: the agent dials again, and no worker notices") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  for (int i = 1; i <= 20; ++i) {
    c.agent->abort();
    REQUIRE(c.until([&] { return c.resumed == i && c.agent && c.heartbeats > 0; }));
  }
  c.shell(2, "exit 5");
  CHECK(c.finished(2).code == 5);
  CHECK_FALSE(c.workers[1].exited);
}

TEST_CASE("the controller does not want the agent back") {
  Controller c([](executors::AgentStart& s) { s.lease_ms = 60'000; });
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  c.refuse = "host 0 was given up";
  c.agent->abort();
  CHECK(c.agent_ended());
  CHECK(c.agent_lines.find("the controller gave this host up") != std::string::npos);
  CHECK(gone(daemon));
}

TEST_CASE("the controller is gone: its port is closed") {
  Controller c([](executors::AgentStart& s) {
    s.orphan_grace_ms = 100;
    s.lease_ms = 60'000;
  });
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  c.stop_listening();
  c.agent->abort();
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent ended with exit code 1");
  CHECK(c.agent_lines.find("lost the controller") != std::string::npos);
  CHECK(gone(daemon));
}

TEST_CASE("the controller is silent for a lease") {
  Controller c([](executors::AgentStart& s) {
    s.lease_ms = 300;
    s.standstill_ms = 300;
  });
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  c.beating = false;
  CHECK(c.agent_ended());
  CHECK(c.agent_lines.find("the controller was silent for") != std::string::npos);
  CHECK(gone(daemon));
}

TEST_CASE("signals of the terminal do nothing, and TERM ends the agent as the controller orders") {
  Controller c;
  c.shell(1, daemon_script);
  const net::Fd daemon = c.process_named_by(1);
  const int watchdog = parent_of(c.agent_pid);
  for (const int pid : {watchdog, c.agent_pid})
    for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) signal_one(pid, signal);
  c.shell(2, "exit 4");
  CHECK(c.finished(2).code == 4);
  signal_one(watchdog, SIGTERM);
  CHECK(c.agent_ended());
  CHECK(c.exit_reason == "elasticrun-agent has ended");
  CHECK(c.workers[1].exited);
  CHECK(gone(daemon));
}

TEST_CASE("many workers are started and killed in quick succession") {
  Controller c;
  for (std::uint32_t i = 1; i <= 64; ++i) c.shell(i, i % 2 ? "exit 1" : "exec sleep 1000");
  for (std::uint32_t i = 2; i <= 64; i += 2)
    c.send(wire::agent::StopWorker{WorkerId{i}, SIGTERM, Duration(10s).count()});
  for (std::uint32_t i = 1; i <= 64; ++i) {
    CHECK(c.finished(i).code == (i % 2 ? 1 : 0));
    CHECK(c.finished(i).signal == (i % 2 ? 0 : SIGTERM));
  }
}

}  // namespace
}  // namespace elasticrun::launcher::agent
