// See shim.hpp.
#include "launcher/agent/workers/shim.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/exit_code.hpp"
#include "launcher/agent/workers/processes.hpp"
#include "launcher/agent/workers/program.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr int channel = 3;  // descriptor in the shim

ShimReport failed(int code, std::string_view text) {
  ShimReport report{ShimReport::failed, code, 0, {}};
  text.copy(report.text, sizeof report.text - 1);
  return report;
}

void tell(const ShimReport& report) {
  (void)!::send(channel, &report, sizeof report, MSG_NOSIGNAL);
}

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

// Leaves 0: /dev/null, 1 and 2: the worker's output, 3: the channel, 4: the worker's progress. All
// others are closed: the agent's connections must not live on in here. The given descriptors are
// above 2 and were made in the order of their targets, which are filled from the lowest up, so that
// none is overwritten before its turn.
void take_descriptors(int channel_fd, int out, int err, int progress) {
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::dup2(channel_fd, channel);
  ::dup2(progress, progress_descriptor);
  ::close_range(progress_descriptor + 1, ~0u, 0);
  ::fcntl(channel, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void become_worker(const wire::agent::StartWorker& order, const std::string& host,
                                const std::string& program, pid_t shim, int failure_pipe) {
  ::setpgid(0, 0);
  // A last safety net: if the shim should be killed, the worker is killed, too.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != shim) ::_exit(exit_code::not_found);
  if (order.after_ms > 0) (void)::poll(nullptr, 0, order.after_ms);
  const ExecFailure failure = exec_program(order, host, program);
  const ShimReport report = failed(failure.code, failure.text);
  (void)!::write(failure_pipe, &report, sizeof report);
  ::_exit(exit_code::not_found);
}

// Returns the worker's pid, or -1 after reporting the failure. Returns when the program runs: the
// pipe closes by itself at the exec.
pid_t start_worker(const wire::agent::StartWorker& order, const std::string& host,
                   const std::string& program) {
  const pid_t self = ::getpid();
  int pipe[2] = {-1, -1};
  const pid_t worker = ::pipe2(pipe, O_CLOEXEC) == 0 ? ::fork() : -1;
  if (worker == 0) become_worker(order, host, program, self, pipe[1]);
  if (worker < 0) {
    tell(failed(exit_code::nothing_started,
                fmt::format("{}: cannot start a process: {}", host, std::strerror(errno))));
    return -1;
  }
  ::setpgid(worker, worker);  // whichever side is first; signals to the group are safe now
  ::close(pipe[1]);
  ShimReport failure;
  ssize_t n = 0;
  while ((n = ::read(pipe[0], &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  ::close(pipe[0]);
  if (n == static_cast<ssize_t>(sizeof failure)) {
    tell(failure);
    return -1;
  }
  // Only the worker's processes may hold its output open, so that the pipes end when they do.
  ::dup2(STDIN_FILENO, STDOUT_FILENO);
  ::dup2(STDIN_FILENO, STDERR_FILENO);
  ::close(progress_descriptor);
  tell({ShimReport::started, worker, 0, {}});
  return worker;
}

// Obeys one order from the channel. False: the agent is gone.
bool obey(pid_t worker) {
  unsigned char order = 0;
  const ssize_t n = ::recv(channel, &order, 1, MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (n < 0) return true;
  if (order == SIGUSR1 || order == SIGUSR2) {
    signal_who_catches(worker, order);
  } else if (order != kill_everything) {
    ::kill(-worker, order);
  } else {
    ::kill(-worker, SIGKILL);
    for (const pid_t child : children_of(::getpid())) kill_tree(child);
  }
  return true;
}

// Reaps orphans of the worker as they come. True: the worker itself has ended; `end` says how.
bool reap(pid_t worker, ShimReport& end) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return false;
    if (info.si_pid != worker) continue;
    const bool exited = info.si_code == CLD_EXITED;
    end = {ShimReport::exited, exited ? info.si_status : 0, exited ? 0 : info.si_status, {}};
    return true;
  }
}

void watch(pid_t worker) {
  const sigset_t all = all_signals();
  pollfd waiting[2] = {{channel, POLLIN, 0}, {::signalfd(-1, &all, SFD_CLOEXEC), POLLIN, 0}};
  ShimReport end;
  while (!reap(worker, end)) {
    if (::poll(waiting, 2, -1) < 0 && errno != EINTR) break;
    signalfd_siginfo info;
    if (waiting[1].revents & POLLIN) (void)!::read(waiting[1].fd, &info, sizeof info);
    if (waiting[0].revents && !obey(worker)) break;
  }
  end_descendants(shim_cleaning_time);
  if (end.kind == ShimReport::exited) tell(end);
}

[[noreturn]] void keep(const wire::agent::StartWorker& order, const std::string& host,
                       const std::string& program, int channel_fd, int out, int err, int progress) {
  become_subreaper();
  ::prctl(PR_SET_NAME, "er-shim");
  take_descriptors(channel_fd, out, err, progress);
  const pid_t worker = start_worker(order, host, program);
  if (worker > 0) watch(worker);
  ::_exit(0);
}

}  // namespace

Result<Kept> start_shim(const wire::agent::StartWorker& order, const std::string& host,
                        const std::string& program) {
  int sockets[2], out[2], err[2], progress[2];
  const auto failure = [&](const char* what) {
    return Error{fmt::format("{}: {}", what, std::strerror(errno))};
  };
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return failure("cannot make a socket");
  net::Fd ours(sockets[0]), theirs(sockets[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return failure("cannot make a pipe");
  net::Fd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return failure("cannot make a pipe");
  net::Fd err_read(err[0]), err_write(err[1]);
  if (::pipe2(progress, O_CLOEXEC) != 0) return failure("cannot make a pipe");
  net::Fd progress_read(progress[0]), progress_write(progress[1]);
  for (const int fd : {out[0], err[0], progress[0]}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  // All signals stay blocked in the shim: a handler of the agent must never run there.
  const sigset_t all = all_signals();
  sigset_t before;
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t shim = ::fork();
  if (shim == 0)
    keep(order, host, program, theirs.get(), out_write.get(), err_write.get(),
         progress_write.get());
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  if (shim < 0) return failure("cannot start a process");
  return Kept{shim, std::move(ours), std::move(out_read), std::move(err_read),
              std::move(progress_read)};
}

}  // namespace elasticrun::launcher::agent::workers
