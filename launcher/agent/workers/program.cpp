// See program.hpp. The search is that of execvp, but along the PATH of the worker and not of the
// agent: on a remote host the agent has the PATH that sshd gave it.
#include "launcher/agent/workers/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/exit_code.hpp"
#include "launcher/agent/workers/shim.hpp"
#include "launcher/machine/program_search.hpp"
#include "launcher/machine/python_source.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

// Enters the caller's directory if it exists here. A missing one is no reason not to run, but is
// reported on standard error.
void enter_directory(const wire::agent::StartWorker& order, const std::string& host) {
  if (order.cwd.empty() || ::chdir(order.cwd.c_str()) == 0) return;
  const int error = errno;
  std::string home(machine::value_of("HOME", order.env));
  if (home.empty() || ::chdir(home.c_str()) != 0) {
    home.assign(1, '/');
    if (::chdir(home.c_str()) != 0) return;
  }
  const std::string line = fmt::format("elasticrun: {}: directory '{}': {}; running in '{}'\n",
                                       host, order.cwd, std::strerror(error), home);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

// Ignored signals and the signal mask survive an exec, and a worker must not inherit ours.
void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
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

// Whether the file is there, after a failed exec. "No such file" for a file that is there means
// that the interpreter in its first line is missing. In a search, a directory that we may not enter
// is not the place of the program.
bool is_there(const std::string& file, int error, bool searched) {
  if (error == ENOTDIR) return false;
  return (error != ENOENT && !searched) || ::access(file.c_str(), F_OK) == 0;
}

}  // namespace

// A path is taken as it is: if the file there cannot be run, that is a mistake the user must see. A
// path relative to another directory than the caller's would be some other program. Of a command
// that runs a Python file, that file counts: its interpreter is not copied.
bool program_is_here(const wire::agent::StartWorker& order) {
  if (order.argv.empty() || order.argv[0].empty()) return true;  // nothing could be copied
  const auto exists = [&](const std::string& file, bool to_run) {
    const std::string path = machine::path_from(order.cwd, file);
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 &&
           (!to_run || (S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0));
  };
  if (const auto source = machine::python_source(order.argv))
    return std::ranges::any_of(source->files,
                               [&](const auto& file) { return exists(file, false); });
  return std::ranges::any_of(
      machine::program_candidates(order.argv[0], machine::value_of("PATH", order.env)),
      [&](const auto& file) { return exists(file, machine::is_searched(order.argv[0])); });
}

ExecFailure exec_program(const wire::agent::StartWorker& order, const std::string& host,
                         const std::string& program) {
  if (order.argv.empty() || order.argv[0].empty())
    return {exit_code::not_found, fmt::format("{}: no program was given", host)};
  enter_directory(order, host);
  reset_signals();
  ::close_range(progress_descriptor + 1, ~0u, CLOSE_RANGE_CLOEXEC);
  const std::vector<char*> argv = pointers(order.argv);
  const std::vector<char*> env = pointers(order.env);
  const std::string& name = program.empty() ? order.argv[0] : program;
  const bool searched = machine::is_searched(name);
  std::string refused;  // a file that is there but could not be run beats "not found"
  int error = ENOENT;
  for (const std::string& file :
       machine::program_candidates(name, machine::value_of("PATH", order.env))) {
    ::execve(file.c_str(), argv.data(), env.data());
    const int why = errno;
    if (is_there(file, why, searched)) {
      refused = file;
      error = why;
    }
    if (!look_further(why)) break;
  }
  if (refused.empty()) {
    const bool beside = searched && ::access(name.c_str(), F_OK) == 0;
    return {exit_code::not_found,
            fmt::format("{}: program '{}' not found{}", host, name,
                        beside ? "; it is in the working directory: write ./" + name : "")};
  }
  const char* text = error == ENOENT ? "its interpreter is missing" : std::strerror(error);
  return {exit_code::not_executable,
          fmt::format("{}: program '{}' cannot be run: {}", host, refused, text)};
}

}  // namespace elasticrun::launcher::agent::workers
