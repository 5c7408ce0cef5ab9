// The directory of an agent's socket, and what happens when other programs clean up there.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "controller.hpp"

namespace elasticrun::launcher::agent {
namespace {

namespace fs = std::filesystem;

// Starts a worker and checks that it reaches the controller.
void check_library(Controller& c, std::uint32_t worker) {
  c.start(worker, {LIBRARY});
  CHECK(c.until([&] { return !c.workers[worker].out.empty(); }));
  CHECK(c.workers[worker].out == "connected\n");
  REQUIRE(c.until([&] { return !c.messages.empty(); }));
  CHECK(c.messages.back() == fmt::format("{}: up", worker));
}

TEST_CASE("workers start even when the login's runtime directory is gone") {
  Controller c;  // removes that directory when the agent is up
  check_library(c, 1);
}

TEST_CASE("the directory is locked against cleaners until the agent has ended") {
  fs::path directory;
  {
    Controller c;
    directory = c.agents_directory();
    CHECK(is_locked(directory));
    signal_one(c.agent_pid, SIGSTOP);  // now only its watchdog can hold the lock
    CHECK(is_locked(directory));
  }
  CHECK(!fs::exists(directory));
}

TEST_CASE("the lock is released when agent and watchdog are killed at once") {
  Controller c;
  c.shell(1, "echo $$; exec sleep 1000");
  const net::Fd worker = c.process_named_by(1);
  const fs::path directory = c.agents_directory();
  signal_one(c.agent_pid, SIGSTOP);
  signal_one(parent_of(c.agent_pid), SIGKILL);
  signal_one(c.agent_pid, SIGKILL);
  CHECK(c.agent_ended());
  CHECK(gone(worker));
  CHECK(!is_locked(directory));
  c.remove_what_is_left();
}

TEST_CASE("a socket or directory that was removed is made again for the next worker") {
  Controller c;
  const fs::path directory = c.agents_directory();
  fs::remove(directory / "agent.sock");
  check_library(c, 1);
  fs::remove_all(directory);
  c.messages.clear();
  check_library(c, 2);
  CHECK(is_locked(directory));
  CHECK((fs::status(directory).permissions() & fs::perms::all) == fs::perms::owner_all);
  CHECK(c.until([&] { return c.agent_lines.find("it is there again") != std::string::npos; }));
  c.agent->send(WorkerId{1}, "down");  // a worker that was connected before still is
  CHECK(c.until([&] { return c.workers[1].out == "connected\ndown\n"; }));
}

TEST_CASE("a socket that cannot be made again is reported, and the job continues") {
  Controller c;
  c.shell(1, "echo $$; exec sleep 1000");
  c.process_named_by(1);
  const fs::path directory = c.agents_directory();
  fs::remove_all(directory);
  std::ofstream(directory) << "of somebody else";
  c.start(2, {LIBRARY});
  CHECK(c.finished(2).code == 121);
  CHECK(c.workers[2].reason.starts_with("n1: the socket of this agent was removed ("));
  CHECK(c.workers[2].reason.find("is no longer the agent's") != std::string::npos);
  CHECK(!c.workers[1].exited);
}

}  // namespace
}  // namespace elasticrun::launcher::agent
