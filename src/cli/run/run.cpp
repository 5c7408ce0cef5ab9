// See run.hpp.
#include "cli/run/run.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <variant>

#include "base/exit_code.hpp"
#include "cli/run/dry_run.hpp"
#include "cli/run/options.hpp"
#include "cli/run/terminal.hpp"
#include "job/driver/controller.hpp"
#include "launcher/machine/descriptors.hpp"
#include "net/sockets.hpp"

namespace elasticrun::cli::run {
namespace {

// Whether the user has interrupted the job. Then it should end even if its last output is not read.
bool was_interrupted(int code) {
  return code == exit_code::signal_base + SIGINT || code == exit_code::signal_base + SIGTERM;
}

// Treats SIGHUP like SIGTERM from the start, not only while the job runs (signals.hpp): a run of
// --host-discovery before that may take a while.
void take_hang_up_for_term() {
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler == SIG_DFL) ::signal(SIGHUP, [](int) { ::raise(SIGTERM); });
}

int parse_and_run(int argc, const char* const* argv, const char* const* env) {
  const launcher::machine::Machine machine = launcher::machine::this_machine();
  auto parsed = parse(argc, argv, env, machine);
  if (const auto* print = std::get_if<PrintAndExit>(&parsed)) {
    std::fputs(print->text.c_str(), print->code == exit_code::ok ? stdout : stderr);
    return print->code;
  }
  const auto& spec = std::get<job::JobSpec>(parsed);
  if (spec.dry_run) {
    std::fputs(describe(spec).c_str(), stdout);
    return exit_code::ok;
  }
  auto terminal = Terminal::open(spec);
  if (!terminal) {
    std::fprintf(stderr, "elasticrun: %s\n", terminal.error().text.c_str());
    return exit_code::usage;
  }
  const std::size_t limit = launcher::machine::raise_descriptor_limit();
  const std::size_t needed = launcher::machine::descriptors_for_hosts(spec.hosts.size()) +
                             (spec.log_dir.empty() ? 0 : open_files_max);
  if (limit < needed)
    (*terminal)->log(job::report::LogLevel::error,
                     launcher::machine::too_few_descriptors(
                         fmt::format("{} hosts", spec.hosts.size()), needed, limit));
  const int code = job::driver::Controller::run(spec, machine, **terminal);
  (*terminal)->finish(code, !was_interrupted(code));
  return code;
}

}  // namespace

int run(int argc, const char* const* argv, const char* const* env) {
  net::take_standard_descriptors();
  take_hang_up_for_term();
  try {
    return parse_and_run(argc, argv, env);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "elasticrun: internal error: %s\n", e.what());
    return exit_code::internal;
  }
}

}  // namespace elasticrun::cli::run
