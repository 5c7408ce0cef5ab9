// See stray_signals.hpp.
#include "worker/api/stray_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>

namespace elasticrun::worker::api {
namespace {

std::atomic<pid_t> shim{0};   // above this worker, which signals its process group
std::atomic<pid_t> owner{0};  // this process; those that it forks have the same handlers

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const auto name_ends = stat.rfind(')');
  if (name_ends == stat.npos || name_ends + 4 > stat.size()) return 0;
  return static_cast<pid_t>(std::strtol(stat.c_str() + name_ends + 4, nullptr, 10));
}

// The process group of a worker is led by the process that the shim has started.
pid_t shim_above() {
  const pid_t above = parent_of(::getpgrp());
  std::ifstream file("/proc/" + std::to_string(above) + "/comm");
  std::string name;
  std::getline(file, name);
  return name == "er-shim" ? above : 0;
}

// The shim is seen from here, so a sender outside of this container (pid 0) is another process.
bool is_meant(pid_t from) {
  return from == ::getpid() || from == ::getppid() || from == shim || from == owner;
}

void handle(int number, siginfo_t* info, void*) {
  if (!is_meant(info->si_pid)) return;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  (void)::raise(number);  // acts when this handler returns
}

void replace_standard(int number, const struct sigaction& action) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
      now.sa_handler == SIG_DFL)
    ::sigaction(number, &action, nullptr);
}

}  // namespace

void ignore_stray_signals() {
  shim = shim_above();
  if (shim == 0) return;
  owner = ::getpid();
  struct sigaction handled {};
  handled.sa_sigaction = handle;
  handled.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int number : {SIGTERM, SIGINT}) replace_standard(number, handled);
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (const int number : {SIGUSR1, SIGUSR2}) replace_standard(number, ignored);
}

}  // namespace elasticrun::worker::api
