// Reads the curve file, runs the command, prints.
#include "cli/ctl.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "autoscaler/exec.hpp"
#include "base/error.hpp"
#include "cli/ctl_options.hpp"
#include "cli/simulate_command.hpp"
#include "job/advice.hpp"
#include "job/deadlines.hpp"
#include "launcher/leashed_program.hpp"
#include "simulate/curve.hpp"

namespace elasticrun::cli {

namespace {

int wrong(const std::string& what) {
  std::fprintf(stderr, "elasticctl: %s\n", what.c_str());
  return exit_code::usage;
}

Result<simulate::Curve> read_curve(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{path + ": cannot be read; curves that come with elasticrun are in configs/curves"};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return simulate::Curve::parse(text, path);
}

simulate::Advisor advisor_of(std::string program) {
  launcher::Leash leash{std::move(program), job::Deadlines{}.policy_timeout};
  return [leash = std::move(leash)](const autoscaler::Question& question) {
    return job::read_advice(launcher::run_leashed(leash, job::question_text(question)).output);
  };
}

}  // namespace

int ctl(int argc, char** argv) {
  const auto asked = parse_ctl(argc, argv);
  if (!asked) return wrong(asked.error().text);
  if (const auto* text = std::get_if<std::string>(&*asked)) {
    std::fputs(text->c_str(), stdout);
    return exit_code::ok;
  }
  auto command = std::get<SimulateCommand>(*asked);
  if (const auto program = autoscaler::Exec::program_of(command.question.policy))
    command.question.advisor = advisor_of(std::string(*program));
  const auto curve = read_curve(command.curve);
  if (!curve) return wrong(curve.error().text);
  const auto printed = simulate_command(command, *curve);
  if (!printed) return wrong(printed.error().text);
  std::fputs(printed->text.c_str(), stdout);
  return exit_code::ok;
}

}  // namespace elasticrun::cli
