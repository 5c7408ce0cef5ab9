// CLI11's second place: elasticctl has commands with flags of their own, which the table of
// elasticrun's flags (flags.cpp) has no room for.
#include "cli/ctl_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "base/time.hpp"
#include "cli/text.hpp"

namespace elasticrun::cli {

namespace {

// Whatever CLI11 would say over several lines, on one.
Error one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return Error{text + " (see elasticctl simulate --help)"};
}

// A duration with its unit, as elasticrun's own flags have it.
void add_time(CLI::App& app, const std::string& name, Duration& value, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&value](const std::string& text) {
           const auto parsed = parse_duration(text);
           if (!parsed) throw CLI::ValidationError(parsed.error().text);
           value = *parsed;
         },
         help)
      ->type_name("TIME")
      ->default_str(to_text(value));
}

void declare(CLI::App& app, SimulateCommand& command) {
  auto& [curve, conditions, question, seeds, json] = command;
  const double endless = std::numeric_limits<double>::max();
  const CLI::Range number(0.0, endless);
  app.add_option("--curve", curve, "the cluster: a file as in configs/curves")
      ->type_name("FILE")
      ->required();
  app.add_option("--policy", question.policy, "elasticrun-policies(7)")->type_name("NAME");
  app.add_option("--start", question.start, "workers to begin with, default all")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", question.seed, "what happens follows from it")->type_name("N");
  app.add_option("--seeds", seeds, "so many seeds from there on")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--noise", conditions.noise, "standard deviation of a step's time, 0.2 is 20 %")
      ->type_name("X")
      ->check(CLI::Range(0.0, 10.0));
  add_time(app, "--start-time", conditions.start, "a worker needs until it is ready");
  add_time(app, "--idle", conditions.idle, "nobody trains at a planned change");
  add_time(app, "--recovery", conditions.recovery, "nobody trains after a loss");
  app.add_option("--failures", conditions.failures_per_hour, "of each host, per hour")
      ->type_name("X")
      ->check(number);
  app.add_option("--price", conditions.price, "of a worker, per hour")
      ->type_name("X")
      ->check(number);
  add_time(app, "--limit", conditions.limit, "the job is cut off");
  add_time(app, "--settle", question.limits.settle, "least quiet time between two changes");
  app.add_option("--min-gain", question.limits.min_gain,
                 "what an added worker has to bring, as a share of a present one")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--json", json, "events as in elasticrun(1), one object a line");
}

}  // namespace

Result<std::variant<SimulateCommand, std::string>> parse_ctl(int argc, const char* const* argv) {
  SimulateCommand command;
  command.question.policy = "throughput";
  command.conditions.start = std::chrono::seconds(30);
  command.conditions.idle = std::chrono::milliseconds(500);
  command.conditions.recovery = std::chrono::seconds(2);
  CLI::App app("Asks about elastic jobs and about what they would do.", "elasticctl");
  app.set_version_flag("--version", std::string(version_text));
  app.require_subcommand(1);
  CLI::App* simulate = app.add_subcommand(
      "simulate", "What a policy would do with a described cluster, in virtual time.");
  simulate->option_defaults()->always_capture_default();
  declare(*simulate, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return std::variant<SimulateCommand, std::string>(app.help());
  } catch (const CLI::CallForVersion&) {
    return std::variant<SimulateCommand, std::string>(std::string(version_text));
  } catch (const CLI::ParseError& error) {
    return one_line(error.what());
  }
  return std::variant<SimulateCommand, std::string>(std::move(command));
}

}  // namespace elasticrun::cli
