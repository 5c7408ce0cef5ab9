// See program.hpp. The search is execvp's, but along the PATH of the worker and not of the agent:
// the agent of a remote host has what sshd gave it.
#include "launcher/agent/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

namespace elasticrun::launcher {
namespace {

std::string_view value_of(std::string_view name, const std::vector<std::string>& env) {
  for (const std::string_view entry : env)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

// The caller's directory where it exists here; a missing one is no reason not to run, but is said.
void enter_directory(const wire::StartWorker& order, const std::string& host) {
  if (order.cwd.empty() || ::chdir(order.cwd.c_str()) == 0) return;
  const int error = errno;
  std::string home(value_of("HOME", order.env));
  if (home.empty() || ::chdir(home.c_str()) != 0) {
    home.assign(1, '/');
    if (::chdir(home.c_str()) != 0) return;
  }
  const std::string line = fmt::format("elasticrun: {}: directory '{}': {}; running in '{}'\n",
                                       host, order.cwd, std::strerror(error), home);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

// Ignored signals and the mask survive an exec: a worker must not inherit ours.
void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Training opens many files and sockets; the soft limit of 1024 is for programs that use select.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string> candidates(const std::string& program, std::string_view path) {
  if (program.find('/') != std::string::npos) return {program};
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> found;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view dir = path.substr(0, colon);
    found.push_back(fmt::format("{}/{}", dir.empty() ? "." : dir, program));
    if (colon == std::string_view::npos) return found;
    path.remove_prefix(colon + 1);
  }
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

bool look_further(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
         error == ENAMETOOLONG || error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

// After a failed exec. "No such file" for a file that is there means the interpreter in its first
// line; in a search, a directory that we may not enter is not the place of the program.
bool is_there(const std::string& file, int error, bool searched) {
  if (error == ENOTDIR) return false;
  return (error != ENOENT && !searched) || ::access(file.c_str(), F_OK) == 0;
}

}  // namespace

ExecFailure exec_program(const wire::StartWorker& order, const std::string& host) {
  if (order.argv.empty() || order.argv[0].empty())
    return {127, fmt::format("{}: no program was given", host)};
  raise_descriptor_limit();
  enter_directory(order, host);
  reset_signals();
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  const std::vector<char*> argv = pointers(order.argv);
  const std::vector<char*> env = pointers(order.env);
  const std::string& program = order.argv[0];
  const bool searched = program.find('/') == std::string::npos;
  std::string refused;  // a file that is there but could not be run beats "not found"
  int error = ENOENT;
  for (const std::string& file : candidates(program, value_of("PATH", order.env))) {
    ::execve(file.c_str(), argv.data(), env.data());
    const int why = errno;
    if (is_there(file, why, searched)) {
      refused = file;
      error = why;
    }
    if (!look_further(why)) break;
  }
  if (refused.empty()) return {127, fmt::format("{}: program '{}' not found", host, program)};
  const char* text = error == ENOENT ? "its interpreter is missing" : std::strerror(error);
  return {126, fmt::format("{}: program '{}' cannot be run: {}", host, refused, text)};
}

}  // namespace elasticrun::launcher
