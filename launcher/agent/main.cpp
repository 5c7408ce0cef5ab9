// elasticrun-agent: starts and stops the workers of one host for an elasticrun that runs elsewhere.
// Everything it needs comes on standard input (agent_start.hpp). Only a user who lets a host join a
// running job by itself gives it options (join.hpp).
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/exit_code.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/agent/join.hpp"
#include "launcher/agent/log.hpp"
#include "launcher/agent/own_file.hpp"
#include "net/sockets.hpp"
#include "net/tls.hpp"

namespace {

using namespace elasticrun;

constexpr int start_time_ms = 30'000;  // a launcher that has sent nothing by then is gone

// Reads blocks and drops what follows the newline, as nothing follows it: no need to read byte by
// byte.
Result<std::string> read_line(int watchdog) {
  std::string line;
  for (;;) {
    pollfd waiting[2] = {{STDIN_FILENO, POLLIN, 0}, {watchdog, POLLIN, 0}};
    const int ready = ::poll(waiting, 2, start_time_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || waiting[1].revents)
      return Error{"nothing came on standard input; elasticrun starts agents by itself"};
    char buffer[4096];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n <= 0) return Error{"standard input ended before a whole line had come"};
    line.append(buffer, static_cast<std::size_t>(n));
    if (const auto end = line.find('\n'); end != std::string::npos) {
      line.resize(end);
      return ok(std::move(line));
    }
    if (line.size() > launcher::executors::agent_start_bytes_max)
      return Error{"the line on standard input is too long"};
  }
}

int fail(std::string_view text) {
  launcher::agent::log_line(text);
  return exit_code::usage;
}

int agent(const launcher::agent::Guarded& guarded) {
  const Result<std::string> line = read_line(guarded.watchdog_socket);
  if (!line) return fail(line.error().text);
  Result<launcher::executors::AgentStart> start = launcher::executors::decode_agent_start(*line);
  if (!start) return fail(start.error().text);
  // srun gives the same line to the agents of many nodes (launcher/srun).
  if (const char* const node = ::getenv("SLURMD_NODENAME"); node && start->name.empty())
    start->name = node;
  if (start->version != ELASTICRUN_VERSION)
    return fail(
        fmt::format("{}: this agent has version {}, elasticrun has {}; install the same on both",
                    start->name, ELASTICRUN_VERSION, start->version));
  return launcher::agent::run_agent(*start, guarded, false);
}

// Standard input is replaced by /dev/null: it is the user's terminal.
int join(const launcher::agent::JoinOptions& options, const launcher::agent::Guarded& guarded) {
  const Result<std::string> line = options.key_file.empty()
                                       ? read_line(guarded.watchdog_socket)
                                       : launcher::agent::read_key_file(options.key_file);
  if (!line) return fail(line.error().text);
  const net::Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  const auto start = launcher::agent::join_start(options, *line, ELASTICRUN_VERSION);
  if (!start) return fail(start.error().text);
  return launcher::agent::run_agent(*start, guarded, true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("elasticrun-agent " ELASTICRUN_VERSION);
    return 0;
  }
  net::use_tls_alone();
  // The launcher that started us by ssh waits for this line (bootstrap.hpp), which reports whether
  // the file is intact.
  if (argc == 3 && std::string_view(argv[1]) == "--ready") {
    const bool damaged = launcher::agent::own_file_is_damaged();
    launcher::agent::remove_own_file_of_one_use();
    fmt::print("\n{} {} 0 {}\n", argv[2], damaged ? "damaged" : "ready", ::getpid());
    std::fflush(stdout);
    if (damaged) return exit_code::not_executable;
    argc = 1;
  }
  if (argc == 1) return launcher::agent::run_guarded(false, agent);
  const auto options =
      launcher::agent::parse_join(std::span<const char* const>(argv, argv + argc).subspan(1));
  if (!options) return fail(options.error().text);
  return launcher::agent::run_guarded(
      true, [&](const launcher::agent::Guarded& guarded) { return join(*options, guarded); });
}
