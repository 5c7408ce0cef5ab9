// See watchdog.hpp.
#include "launcher/agent/watchdog.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/exit_code.hpp"
#include "launcher/agent/link/goodbye.hpp"
#include "launcher/agent/log.hpp"
#include "launcher/agent/workers/private_directory.hpp"
#include "launcher/agent/workers/processes.hpp"
#include "launcher/bundle/bundle_cache.hpp"
#include "launcher/executors/wrap.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent {
namespace {

constexpr Duration cleaning_time = std::chrono::seconds(5);

void ignore(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(signal, &action, nullptr);
}

// These signals are blocked here and taken one by one: no handler, no race, nothing to poll.
// The launcher's order to end at once is for the watchdog: a stuck agent process obeys nothing.
constexpr int guarded[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, executors::order_to_end};

sigset_t guarded_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : guarded) sigaddset(&signals, signal);
  return signals;
}

// Waits for the agent's end; returns its status as waitpid gives it.
int wait_for(pid_t agent, const sigset_t& signals) {
  for (;;) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal == executors::order_to_end)
      ::kill(agent, SIGKILL);
    else if (signal != SIGCHLD && signal > 0)
      ::kill(agent, signal);
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == agent) return status;
  }
}

}  // namespace

int run_guarded(bool by_hand, const std::function<int(const Guarded&)>& agent) {
  net::take_standard_descriptors();
  // A session of its own (setsid): what is typed at the controller's terminal is for the controller
  // only. A group leader is refused one, but ignores the terminal's signals all the same.
  if (!by_hand) ::setsid();
  for (const int signal : {SIGQUIT, SIGHUP, SIGPIPE}) ignore(signal);
  if (!by_hand) ignore(SIGINT);
  ::signal(SIGCHLD, SIG_DFL);  // if a parent ignored it, no end would be reported
  workers::become_subreaper();
  // Blocked before anything exists that a signal could leave behind.
  const sigset_t signals = guarded_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const Result<workers::PrivateDirectory> directory = workers::make_private_directory();
  if (!directory) {
    log_line(directory.error().text);
    return exit_code::nothing_started;
  }
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    log_line(fmt::format("no pair of sockets can be made: {}", std::strerror(errno)));
    workers::remove_directory(directory->path);
    return exit_code::nothing_started;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(sockets[0]);
    ::setsid();
    workers::become_subreaper();
    for (const int signal : guarded) sigdelset(&before, signal);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const int code = agent(Guarded{sockets[1], directory->path});
    workers::remove_directory(directory->path);  // the watchdog may have been killed
    return code;
  }
  ::close(sockets[1]);
  int code = exit_code::nothing_started;
  if (child > 0) {
    ::prctl(PR_SET_NAME, "er-watchdog");
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);  // the real standard input belongs to the agent process
    ::close(null);
    const int status = wait_for(child, signals);
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    for (const pid_t left : workers::children_of(::getpid())) workers::kill_tree(left);
    if (WIFSIGNALED(status))
      link::say_goodbye(sockets[0],
                        fmt::format("its agent was killed by signal {}", WTERMSIG(status)));
    workers::end_descendants(cleaning_time);
  } else {
    log_line(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  bundle::remove_unfinished_bundles(directory->path);
  workers::remove_directory(directory->path);
  return code;
}

}  // namespace elasticrun::launcher::agent
