// Reads the files, runs the command, prints.
#include "cli/ctl/ctl.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "autoscaler/exec.hpp"
#include "base/exit_code.hpp"
#include "base/file.hpp"
#include "base/line.hpp"
#include "cli/ctl/options.hpp"
#include "job/deadlines.hpp"
#include "job/report/advice.hpp"
#include "job/report/event_log.hpp"
#include "launcher/executors/hook_process.hpp"
#include "launcher/hosts/hosts.hpp"
#include "simulate/what_if/curve.hpp"

namespace elasticrun::cli::ctl {

namespace {

int wrong(const std::string& what) {
  std::fprintf(stderr, "elasticctl: %s\n", as_own_line(what).c_str());
  return exit_code::usage;
}

Result<std::string> read(const std::string& path, const std::string& hint) {
  constexpr std::size_t most = std::size_t{1} << 30;  // the events of a long job
  auto text = read_file(path, most);
  if (!text) return Error{text.error().text + "; " + hint};
  return text;
}

simulate::what_if::Advisor advisor_of(std::string program) {
  launcher::executors::Hook hook{std::move(program), job::Deadlines{}.policy_timeout};
  return [hook = std::move(hook)](const autoscaler::Question& question) {
    return job::report::read_advice(
        launcher::executors::run_hook(hook, job::report::question_text(question)).output);
  };
}

Result<Report> run(SimulateCommand command) {
  if (const auto program = autoscaler::Exec::program_of(command.question.policy))
    command.question.advisor = advisor_of(std::string(*program));
  const auto text = read(command.curve, "curves that come with elasticrun are in configs/curves");
  if (!text) return text.error();
  const auto curve = simulate::what_if::Curve::parse(*text, command.curve);
  if (!curve) return curve.error();
  return simulate_command(command, *curve);
}

Result<Report> run(const PlanCommand& command) {
  const auto text = read(command.events, "it is what elasticrun --events FILE writes");
  if (!text) return text.error();
  const auto events = job::report::read_events(*text, command.events);
  if (!events) return events.error();
  std::vector<launcher::hosts::Host> hosts;
  if (!command.hosts.empty()) {
    const auto file = read(command.hosts, "it is a host file, see elasticrun-hosts(5)");
    if (!file) return file.error();
    auto parsed = launcher::hosts::parse_hosts(*file, command.hosts);
    if (!parsed) return parsed.error();
    hosts = std::move(*parsed);
  }
  return plan_command(command, *events, hosts);
}

Result<Report> run(const ExportCommand& command) { return export_command(command); }

Result<Report> run(const std::string& text) { return Report{text}; }

}  // namespace

int ctl(int argc, char** argv) {
  const auto asked = parse_ctl(argc, argv);
  if (!asked) return wrong(asked.error().text);
  const auto printed = std::visit([](const auto& command) { return run(command); }, *asked);
  if (!printed) return wrong(printed.error().text);
  std::fputs(printed->text.c_str(), stdout);
  return exit_code::ok;
}

}  // namespace elasticrun::cli::ctl
