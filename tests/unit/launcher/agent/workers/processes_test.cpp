// Killing trees of real processes, and no others.
#include "launcher/agent/workers/processes.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <functional>

namespace {

// Runs once, just before this process sends its first signal in either way.
std::function<void()> before_signal;

void tell() {
  if (before_signal) std::exchange(before_signal, nullptr)();
}

long call(long number, long a, long b, long c, long d) {
  using Call = long (*)(long, ...);
  static const auto real = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "syscall"));
  return real(number, a, b, c, d);
}

}  // namespace

// Replace the functions of the C library in this whole program.
extern "C" int kill(pid_t pid, int signal) noexcept {
  tell();
  return static_cast<int>(call(SYS_kill, pid, signal, 0, 0));
}

extern "C" long syscall(long number, ...) noexcept {
  if (number == SYS_pidfd_send_signal) tell();
  std::va_list list;
  va_start(list, number);
  long arguments[4];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  return call(number, arguments[0], arguments[1], arguments[2], arguments[3]);
}

namespace elasticrun::launcher::agent::workers {
namespace {

// A child that stays until it is killed; with that process id, if it is free and we may choose it.
pid_t child(pid_t number = 0) {
  clone_args how{};
  how.exit_signal = SIGCHLD;
  if (number != 0) {
    how.set_tid = reinterpret_cast<std::uintptr_t>(&number);
    how.set_tid_size = 1;
  }
  const auto pid =
      static_cast<pid_t>(call(SYS_clone3, reinterpret_cast<long>(&how), sizeof how, 0, 0));
  while (pid == 0) ::pause();
  return pid;
}

// The signal that killed it: SIGKILL if that came before, otherwise the SIGHUP that is sent here.
int end(pid_t pid) {
  int status = 0;
  call(SYS_kill, pid, SIGHUP, 0, 0);
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WTERMSIG(status);
}

// A child of this process, with one child of its own.
struct Family {
  Family() {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    parent = ::fork();
    if (parent == 0) {
      const pid_t own = workers::child();
      (void)!::write(pipe[1], &own, sizeof own);
      for (;;) ::pause();
    }
    REQUIRE(::read(pipe[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  pid_t parent = -1;
  pid_t grandchild = -1;
};

struct Subreaper {
  Subreaper() { become_subreaper(); }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_CASE("a tree is killed together with its root") {
  const Subreaper reaper;
  const Family family;
  const pid_t other = child();
  kill_tree(family.parent);
  CHECK(end(family.parent) == SIGKILL);
  CHECK(end(family.grandchild) == SIGKILL);
  CHECK(end(other) == SIGHUP);
}

TEST_CASE("only children of this process are killed as roots") {
  const Subreaper reaper;
  const Family family;
  kill_tree(family.grandchild);
  CHECK(end(family.parent) == SIGHUP);
  CHECK(end(family.grandchild) == SIGHUP);
}

TEST_CASE("a process that has reused the id of a dead one is left alone") {
  const Subreaper reaper;
  const Family family;
  pid_t stranger = -1;
  before_signal = [&] {
    end(family.parent);
    end(family.grandchild);
    stranger = child(family.grandchild);
  };
  kill_tree(family.parent);
  if (stranger < 0) {
    MESSAGE("not checked: no right to choose the number of a process");
    return;
  }
  CHECK(end(stranger) == SIGHUP);
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
