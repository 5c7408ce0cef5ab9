// elasticrun: the launcher. Parses, then runs the job or prints what was asked for.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <variant>

#include "base/error.hpp"
#include "cli/dry_run.hpp"
#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "job/controller.hpp"

namespace {

int run(int argc, char** argv) {
  using namespace elasticrun;
  const launcher::Machine machine = launcher::this_machine();
  auto parsed = cli::parse(argc, argv, ::environ, machine);
  if (const auto* print = std::get_if<cli::PrintAndExit>(&parsed)) {
    std::fputs(print->text.c_str(), print->code == exit_code::ok ? stdout : stderr);
    return print->code;
  }
  const auto& spec = std::get<job::JobSpec>(parsed);
  if (spec.dry_run) {
    std::fputs(cli::describe(spec).c_str(), stdout);
    return exit_code::ok;
  }
  auto terminal = cli::Terminal::open(spec);
  if (!terminal) {
    std::fprintf(stderr, "elasticrun: %s\n", terminal.error().text.c_str());
    return exit_code::usage;
  }
  return job::Controller::run(spec, machine, **terminal);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "elasticrun: internal error: %s\n", e.what());
    return elasticrun::exit_code::internal;
  }
}
