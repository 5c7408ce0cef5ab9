// Reads the curve file, runs the command, prints.
#include "cli/ctl.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "cli/ctl_options.hpp"
#include "cli/simulate_command.hpp"
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

}  // namespace

int ctl(int argc, char** argv) {
  const auto asked = parse_ctl(argc, argv);
  if (!asked) return wrong(asked.error().text);
  if (const auto* text = std::get_if<std::string>(&*asked)) {
    std::fputs(text->c_str(), stdout);
    return exit_code::ok;
  }
  const auto& command = std::get<SimulateCommand>(*asked);
  const auto curve = read_curve(command.curve);
  if (!curve) return wrong(curve.error().text);
  const auto printed = simulate_command(command, *curve);
  if (!printed) return wrong(printed.error().text);
  std::fputs(printed->text.c_str(), stdout);
  return exit_code::ok;
}

}  // namespace elasticrun::cli
