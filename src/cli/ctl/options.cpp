// The second file that uses CLI11, beside cli/run/options.cpp: each command of elasticctl has its
// own flags, which do not fit into the table of elasticrun's flags (flags.hpp).
#include "cli/ctl/options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/time.hpp"
#include "cli/text.hpp"

namespace elasticrun::cli::ctl {

namespace {

// An error with CLI11's message, which may have several lines, on one line.
Error one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return Error{text + " (see elasticctl --help)"};
}

// Adds a flag for a duration with its unit, like those of elasticrun's flags.
CLI::Option* add_time(CLI::App& app, const std::string& name, Duration& value,
                      const std::string& help) {
  return app
      .add_option_function<std::string>(
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

// A validator for CLI11, which reads "nan" and "inf" as numbers, and whose range check accepts nan.
std::string finite(const std::string& text) {
  return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : "'" + text + "' is no number";
}

// Adds a flag for a duration, "30s", or a range of durations, "15s:31s".
void add_span(CLI::App& app, const std::string& name, simulate::what_if::Span& value,
              const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&value](const std::string& text) {
           const auto colon = std::min(text.find(':'), text.size());
           const auto low = parse_duration(text.substr(0, colon));
           const auto high = colon == text.size()
                                 ? low
                                 : parse_duration(std::string_view(text).substr(colon + 1));
           if (!low || !high) throw CLI::ValidationError((low ? high : low).error().text);
           if (*low > *high) throw CLI::ValidationError(text + ": the shorter time comes first");
           value = {*low, *high};
         },
         help)
      ->type_name("TIME[:TIME]")
      ->default_str(to_text(value.low) +
                    (value.low < value.high ? " to " + to_text(value.high) : ""));
}

// Highest rate of events per host and hour: one per millisecond leaves no job to simulate.
constexpr double most_per_hour = 3.6e6;

void add_rate(CLI::App& app, const std::string& name, double& value, const std::string& help) {
  app.add_option(name, value, help)
      ->type_name("X")
      ->check(finite)
      ->check(CLI::Range(0.0, most_per_hour));
}

job::StragglerAction straggler_action(const std::string& name) {
  const std::map<std::string, job::StragglerAction> known{
      {"off", job::StragglerAction::off},
      {"report", job::StragglerAction::report},
      {"replace", job::StragglerAction::replace}};
  const auto found = known.find(name);
  if (found == known.end())
    throw CLI::ValidationError("--stragglers: '" + name + "' is none of off, report and replace");
  return found->second;
}

// Adds the flags for what happens to hosts: failures, removals and slow phases.
void declare_mishaps(CLI::App& app, simulate::what_if::Conditions& conditions) {
  add_rate(app, "--failures", conditions.failures_per_hour, "lose each host so often per hour");
  add_rate(app, "--revoked", conditions.revoked_per_hour, "take each host away so often per hour");
  add_time(app, "--notice", conditions.notice,
           "give this time between the notice and the end of a host");
  add_time(app, "--recovery", conditions.recovery, "pause training this long after a loss");
  add_time(app, "--new-host", conditions.new_host, "replace a lost machine after this time");
  add_rate(app, "--slow-hosts", conditions.slow_per_hour, "slow each host down so often per hour");
  app.add_option("--slow-speed", conditions.slow_speed,
                 "run a slow host at this part of its usual speed")
      ->type_name("X")
      ->check(finite)
      ->check(CLI::Range(0.01, 1.0));
  add_time(app, "--slow-time", conditions.slow_time,
           "end a slow phase after this time in the mean");
  app.add_option_function<std::string>(
         "--stragglers",
         [&conditions](const std::string& name) { conditions.stragglers = straggler_action(name); },
         "replace or report slow workers, or leave them alone")
      ->type_name("off|report|replace")
      ->default_str("replace");
  app.add_option_function<std::string>(
         "--shares",
         [&conditions](const std::string& by) { conditions.shares_by_speed = by == "speed"; },
         "share the samples of a step out equally or by speed")
      ->type_name("equal|speed")
      ->check(CLI::IsMember({"equal", "speed"}))
      ->default_str("speed");
  app.add_option("--spares", conditions.spares, "keep N workers ready")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
}

void add_aims(CLI::App& app, double& price, autoscaler::Aims& aims) {
  app.add_option("--price", price, "charge this for a worker and hour where its host has no price")
      ->type_name("X")
      ->check(finite)
      ->check(CLI::PositiveNumber);
  add_time(app, "--deadline", aims.deadline, "end the whole job within this time")->default_str("");
  app.add_option("--budget", aims.budget, "spend no more on the whole job")
      ->type_name("MONEY")
      ->check(finite)
      ->check(CLI::PositiveNumber)
      ->default_str("");
  app.add_option_function<std::string>(
         "--utility",
         [&aims](const std::string& text) {
           auto points = autoscaler::parse_utility(text);
           if (!points) throw CLI::ValidationError("--utility: " + points.error().text);
           aims.utility = std::move(*points);
         },
         "value the end by its time: 1h:100,2h:40")
      ->type_name("LIST");
}

void add_min_gain(CLI::App& app, double& min_gain) {
  app.add_option("--min-gain", min_gain,
                 "add a worker only if it brings this share of a present one")
      ->type_name("X")
      ->check(finite)
      ->check(CLI::Range(0.0, 1.0));
}

void declare(CLI::App& app, PlanCommand& command) {
  app.add_option("EVENTS", command.events, "the file that elasticrun --events wrote")->required();
  app.add_option("--job", command.job,
                 "choose the run of this job; default: the last one that ended")
      ->type_name("ID");
  app.add_option("--hosts", command.hosts, "take prices and sizes from this host file")
      ->type_name("FILE");
  app.add_option("--sizes", command.sizes,
                 "compare these, as in 1,2,4; default: those measured and others")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000))
      ->default_str("");
  app.add_option("--samples", command.samples,
                 "plan for N samples; default: as many as that run trained")
      ->type_name("N")
      ->check(finite)
      ->check(CLI::Range(1.0, 1e15))
      ->default_str("");
  add_aims(app, command.price, command.aims);
  add_min_gain(app, command.min_gain);
  app.add_flag("--json", command.json, "print a JSON object for each size");
}

void declare(CLI::App& app, SimulateCommand& command) {
  auto& [curve, conditions, question, seeds, json] = command;
  app.add_option("--curve", curve, "read the cluster from FILE, as in configs/curves")
      ->type_name("FILE")
      ->required();
  app.add_option("--policy", question.policy, "decide by this policy, see elasticrun-policies(7)")
      ->type_name("NAME");
  app.add_option("--start", question.start,
                 "begin with N workers; default: the largest size of the curve")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->default_str("");
  app.add_option("--seed", question.seed, "draw what chance decides from this seed")
      ->type_name("N");
  app.add_option("--seeds", seeds, "run N seeds, from --seed on")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--noise", conditions.noise,
                 "vary a step's time by this standard deviation; 0.2 is 20 %")
      ->type_name("X")
      ->check(finite)
      ->check(CLI::Range(0.0, 10.0));
  add_span(app, "--start-time", conditions.start, "let a worker take this time until it is ready");
  add_time(app, "--idle", conditions.idle, "pause training this long at a planned change");
  declare_mishaps(app, conditions);
  add_aims(app, conditions.price, question.aims);
  add_time(app, "--limit", conditions.limit, "end a job that takes longer");
  add_time(app, "--settle", question.limits.settle, "stay at one size at least this long");
  add_min_gain(app, question.limits.min_gain);
  app.add_flag("--json", json, "print events as elasticrun does, a JSON object a line");
}

void declare(CLI::App& app, ExportCommand& command) {
  app.add_option("SAVE", command.save, "a save, or a folder of elasticrun --save: its newest one")
      ->required();
  app.add_option("FILE", command.file, "write this file: NAME.npz for numpy, NAME.pt for PyTorch")
      ->required();
  app.add_option("--as", command.types,
                 "take state for elements of this type, as in float32,step=int64")
      ->type_name("[NAME=]TYPE,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("uint8");
}

// The policy when none is named: naming an aim implies the policy that pursues it.
std::string implied(const autoscaler::Aims& aims) {
  if (aims.deadline > Duration::zero()) return "deadline";
  if (aims.budget > 0) return "budget";
  if (!aims.utility.empty()) return "utility";
  return autoscaler::Options().policy;
}

}  // namespace

Result<Asked> parse_ctl(int argc, const char* const* argv) {
  SimulateCommand simulate;
  simulate.conditions.start = {std::chrono::seconds(15), std::chrono::seconds(31)};
  simulate.conditions.idle = std::chrono::milliseconds(500);
  simulate.conditions.recovery = std::chrono::seconds(2);
  simulate.conditions.new_host = std::chrono::seconds(60);
  PlanCommand plan;
  ExportCommand exported;
  CLI::App app("Asks about elastic jobs and about what they would do.", "elasticctl");
  app.set_version_flag("--version", version_text("elasticctl"));
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  declare(*app.add_subcommand("simulate",
                              "What a policy would do with a described cluster, in virtual time."),
          simulate);
  CLI::App* asks_plan = app.add_subcommand(
      "plan", "Show size, time and cost of a job, from the events of an earlier run.");
  declare(*asks_plan, plan);
  CLI::App* asks_export = app.add_subcommand(
      "export", "Write the state of a save as arrays that numpy or PyTorch reads.");
  declare(*asks_export, exported);
  if (argc > 1 && *argv[1] != '-' &&
      app.get_subcommands([&](const CLI::App* one) { return one->check_name(argv[1]); }).empty())
    return Error{fmt::format(
        "'{}' is no command; simulate, plan and export are. A running job is followed by "
        "its --events, and its size follows its --hosts file (see elasticctl --help)",
        argv[1])};
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Asked(app.help());
  } catch (const CLI::CallForVersion&) {
    return Asked(version_text("elasticctl"));
  } catch (const CLI::ParseError& error) {
    return one_line(error.what());
  }
  if (asks_export->parsed()) return Asked(std::move(exported));
  plan.policy = implied(plan.aims);
  if (asks_plan->parsed()) return Asked(std::move(plan));
  if (simulate.question.policy.empty()) simulate.question.policy = implied(simulate.question.aims);
  return Asked(std::move(simulate));
}

}  // namespace elasticrun::cli::ctl
