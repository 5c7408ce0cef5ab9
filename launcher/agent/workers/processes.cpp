// See processes.hpp.
#include "launcher/agent/workers/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "launcher/agent/workers/pidfd.hpp"
#include "launcher/agent/workers/process_stat.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

std::string read_all(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

// Reads numbers separated by blanks, as in /proc/PID/task/TID/children.
void append_numbers(const std::string& text, std::vector<pid_t>& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    pid_t pid = 0;
    const auto [next, ec] = std::from_chars(at, end, pid);
    if (ec == std::errc{}) out.push_back(pid);
    at = next == at ? at + 1 : next;
  }
}

// Whether the process has a handler for the signal, from the mask in /proc/PID/status: hexadecimal,
// bit 0 is signal 1.
bool catches(pid_t pid, int signal) {
  constexpr std::string_view name = "\nSigCgt:\t";
  const std::string status = read_all(fmt::format("/proc/{}/status", pid));
  const auto at = status.find(name);
  if (at == status.npos) return false;
  std::uint64_t mask = 0;
  std::from_chars(status.data() + at + name.size(), status.data() + status.size(), mask, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

// Most processes of one walk. More are not worth it: the next walk finds what this one does not
// reach.
constexpr std::size_t tree_max = 10'000;
constexpr std::size_t descriptors_max = 256;  // most pidfds of one walk

// A process that a walk has found. The pidfd makes sure that we never mean another process with the
// same pid; without one (old kernels, or too many at once), the start time is checked again.
struct Found {
  pid_t pid = -1;
  net::Fd process;
  std::uint64_t started = 0;

  bool is_there() const {
    if (process.get() >= 0) return lives(process);
    const auto now = process_stat(pid);
    return now && now->started == started;
  }
  void signal(int number) const {
    if (process.get() >= 0)
      (void)send_signal(process, number);
    else if (is_there())
      ::kill(pid, number);
  }
};

std::optional<Found> child_of(pid_t parent, pid_t pid, bool with_descriptor) {
  Found found{pid, with_descriptor ? open_process(pid) : net::Fd(), 0};
  const auto stat = process_stat(pid);
  if (!stat || stat->parent != parent) return std::nullopt;
  found.started = stat->started;
  return found;
}

// That process, if it is a child of ours, and everything below it. Children are listed before
// anything is done to a parent: afterwards they could be another process's. A process that has lost
// its parent meanwhile is left out: it has a new parent, and the next walk finds it below that.
std::vector<Found> tree_of(pid_t child) {
  std::vector<Found> tree;
  if (auto root = child_of(::getpid(), child, true)) tree.push_back(std::move(*root));
  for (std::size_t i = 0; i < tree.size() && tree.size() < tree_max; ++i) {
    const std::size_t before = tree.size();
    for (const pid_t pid : children_of(tree[i].pid))
      if (auto found = child_of(tree[i].pid, pid, tree.size() < descriptors_max))
        tree.push_back(std::move(*found));
    // They may be children of another process that has this pid now.
    if (!tree[i].is_there())
      tree.erase(tree.begin() + static_cast<std::ptrdiff_t>(before), tree.end());
  }
  return tree;
}

}  // namespace

void become_subreaper() { ER_CHECK(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); }

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  DIR* dir = ::opendir(tasks.c_str());
  if (!dir) return children;
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.')
      append_numbers(read_all(fmt::format("{}/{}/children", tasks, entry->d_name)), children);
  ::closedir(dir);
  return children;
}

void kill_tree(pid_t child) {
  for (const Found& each : tree_of(child)) each.signal(SIGKILL);
}

void kill_below(pid_t child) {
  const std::vector<Found> tree = tree_of(child);
  for (std::size_t i = 1; i < tree.size(); ++i) tree[i].signal(SIGKILL);
}

void signal_who_catches(pid_t child, int signal) {
  for (const Found& each : tree_of(child))
    if (catches(each.pid, signal)) each.signal(signal);
}

void end_strays(const std::set<pid_t>& shims, pid_t hook) {
  for (const pid_t child : children_of(::getpid()))
    if (child != hook && ::waitpid(child, nullptr, WNOHANG) == 0 && !shims.contains(child))
      kill_tree(child);
}

// Every process that was started unseen during a walk becomes our child when its parent, which was
// killed in that walk, dies. Then a SIGCHLD is pending, and the next walk finds it.
bool end_descendants(Duration limit) {
  sigset_t child_died;
  sigemptyset(&child_died);
  sigaddset(&child_died, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_died, nullptr);
  const Time until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    for (const pid_t child : children_of(::getpid())) kill_tree(child);
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG | __WALL)) > 0) {
    }
    if (reaped < 0) return true;  // ECHILD: no process is left
    const Duration left = until - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) return false;
    const timespec wait{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    ::sigtimedwait(&child_died, nullptr, &wait);
  }
}

}  // namespace elasticrun::launcher::agent::workers
