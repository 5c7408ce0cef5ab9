// See guardian.hpp.
#include "launcher/agent/guardian.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "launcher/agent/goodbye.hpp"
#include "launcher/agent/parcel_store.hpp"
#include "launcher/agent/processes.hpp"
#include "launcher/agent/say.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher {
namespace {

constexpr Duration cleaning_time = std::chrono::seconds(5);

// What a loss of power, or of agent and guardian at once, has left: a directory of ours with a
// socket that nobody listens to any more. Not a young one: its agent may be about to listen.
void remove_abandoned(const std::string& base) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    struct stat status {};
    if (!name.starts_with("elasticrun-") || name.size() != std::strlen("elasticrun-XXXXXX") ||
        ::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || status.st_mtime > ::time(nullptr) - 60)
      continue;
    if (net::nobody_listens(path + "/agent.sock")) remove_directory(path);
  }
}

// A socket's path must fit into sockaddr_un (108 bytes), which a TMPDIR deep in a batch system's
// tree does not; hence the last resort.
std::string make_directory() {
  const char* const bases[] = {std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), "/tmp"};
  for (const char* base : bases) {
    if (!base || base[0] != '/') continue;
    std::string path = fmt::format("{}/elasticrun-XXXXXX", base);
    if (path.size() + std::strlen("/agent.sock") >= sizeof(sockaddr_un{}.sun_path)) continue;
    if (!::mkdtemp(path.data())) continue;
    remove_abandoned(base);
    return path;
  }
  return {};
}

void ignore(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(signal, &action, nullptr);
}

// These signals are blocked here and taken one by one: no handler, no race, nothing to poll.
// SIGUSR1 is the launcher's "at once": an agent proper that is stuck cannot obey anything else.
sigset_t guarded_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

// How it has ended, as waitpid says it.
int wait_for(pid_t agent, const sigset_t& signals) {
  for (;;) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal == SIGTERM || signal == SIGINT) ::kill(agent, signal);
    if (signal == SIGUSR1) ::kill(agent, SIGKILL);
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == agent) return status;
  }
}

}  // namespace

void remove_directory(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

int run_guarded(bool by_hand, const std::function<int(const Guarded&)>& agent) {
  net::take_standard_descriptors();
  // A session of its own: what is typed at the controller's terminal is the controller's business.
  // Refused to a group leader, which then ignores the terminal's signals all the same.
  if (!by_hand) ::setsid();
  for (const int signal : {SIGQUIT, SIGHUP, SIGPIPE}) ignore(signal);
  if (!by_hand) ignore(SIGINT);
  become_subreaper();
  // Before there is anything that a signal could leave behind.
  const sigset_t signals = guarded_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const std::string directory = make_directory();
  int sockets[2];
  if (directory.empty() || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    say(fmt::format("no private directory can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp: {}",
                    std::strerror(errno)));
    return 121;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(sockets[0]);
    ::setsid();
    become_subreaper();
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigdelset(&before, signal);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return agent(Guarded{sockets[1], directory});
  }
  ::close(sockets[1]);
  int code = 121;
  if (child > 0) {
    ::prctl(PR_SET_NAME, "er-guardian");
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);  // its end belongs to the agent proper
    ::close(null);
    const int status = wait_for(child, signals);
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    for (const pid_t left : children_of(::getpid())) kill_tree(left);
    if (WIFSIGNALED(status))
      say_goodbye(sockets[0], fmt::format("its agent was killed by signal {}", WTERMSIG(status)));
    end_descendants(cleaning_time);
  } else {
    say(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  remove_unfinished_parcels(directory);
  remove_directory(directory);
  return code;
}

}  // namespace elasticrun::launcher
