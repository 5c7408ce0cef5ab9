// See options.hpp. The only file of elasticrun that uses CLI11, which turns command line and TOML
// into texts.
#include "cli/run/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "base/exit_code.hpp"
#include "cli/flags.hpp"
#include "cli/run/convert.hpp"
#include "cli/run/python_program.hpp"
#include "cli/run/save_flags.hpp"
#include "cli/text.hpp"

namespace elasticrun::cli::run {
namespace {

struct CommandLine {
  Settings settings;
  std::vector<std::string> program;  // the program and its arguments
};

Error with_hint(std::string text) { return Error{std::move(text) + " (see elasticrun --help)"}; }

// All spellings of a flag as CLI11 wants them. Users mix up dashes and underscores, so both are
// accepted.
std::string names_for_cli11(const Flag& flag) {
  std::string names;
  for (std::string spelling : spellings(flag)) {
    if (spelling == "-np") continue;  // see read_command_line
    names += (names.empty() ? "" : ",") + spelling;
    if (spelling.find('-', 2) == spelling.npos) continue;
    std::replace(spelling.begin() + 2, spelling.end(), '-', '_');
    names += "," + spelling;
  }
  return names;
}

using Options = std::vector<std::pair<const Flag*, const CLI::Option*>>;

Options add_flags(CLI::App& app) {
  Options options;
  app.set_help_flag();
  app.prefix_command();
  for (const Flag& flag : flags) {
    const bool with_value = flag.kind == Kind::value || flag.kind == Kind::list;
    CLI::Option* const option =
        with_value ? app.add_option(names_for_cli11(flag)) : app.add_flag(names_for_cli11(flag));
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
    options.emplace_back(&flag, option);
  }
  return options;
}

// An error if `left`, the first argument that CLI11 did not recognise, looks like a flag.
std::optional<Error> unknown_flag(const std::string& left,
                                  const std::vector<std::string>& arguments) {
  if (left.size() < 2 || left.front() != '-' || left == "--") return std::nullopt;
  // From -hosts CLI11 takes -h and leaves -osts. The error must name what the user wrote.
  auto written = std::ranges::find(arguments, left);
  if (written == arguments.end())
    written = std::ranges::find_if(arguments, [&](const std::string& one) {
      return one.starts_with('-') && one.ends_with(left.substr(1));
    });
  const std::string& argument = written == arguments.end() ? left : *written;
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  return with_hint(fmt::format("unknown flag {}{}", flag, suggestion(name)));
}

Result<CommandLine> read_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  CLI::App app;
  const Options options = add_flags(app);
  // CLI11 would take -np for -n with the value p. The number of arguments stays the same, so that
  // the program's own arguments can be taken from the original.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  std::ranges::replace(reversed, std::string("-np"), std::string("--np"));
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch&) {
    return with_hint(fmt::format("{} needs a value", arguments.back()));
  } catch (const CLI::ParseError& error) {
    return with_hint(error.what());
  }
  for (const auto& [flag, option] : options)
    if (option->count() > 0)
      line.settings[std::string(flag->name)] = {option->results(), Source::command_line,
                                                spelled(*flag)};
  const auto rest = static_cast<std::ptrdiff_t>(app.remaining().size());
  line.program.assign(arguments.end() - rest, arguments.end());
  if (!line.program.empty() && line.program.front() != "-m") {
    if (auto error = unknown_flag(app.remaining().front(), arguments)) return *error;
    if (line.program.front() == "--") line.program.erase(line.program.begin());
  }
  // In "--hosts= ./train" CLI11 takes the program for the value of --hosts.
  for (auto one = arguments.begin(); one != arguments.end() - rest; ++one)
    if (one->starts_with("--") && one->find('=') == one->size() - 1)
      return with_hint(fmt::format("{} needs a value", one->substr(0, one->size() - 1)));
  return line;
}

// Whether `text` begins an array that continues on the next line.
bool array_is_open(const std::string& text) {
  const auto equal = text.find('=');
  if (equal == text.npos) return false;
  const auto begin = text.find_first_not_of(" \t", equal + 1);
  return begin != text.npos && text[begin] == '[' && text.find(']', begin) == text.npos;
}

// The answer to --help, --version or --show-config, which need no program; nothing if none of them
// is given.
std::optional<PrintAndExit> answer_of_command(const Settings& given, const Settings& all) {
  if (find(given, "help")) return PrintAndExit{help_text(), exit_code::ok};
  if (find(given, "version")) return PrintAndExit{version_text("elasticrun"), exit_code::ok};
  if (find(given, "show-config")) return PrintAndExit{show(all), exit_code::ok};
  return std::nullopt;
}

// File, environment and command line in one table; of these three, the later ones win.
Result<Settings> merged(const Settings& given, const std::vector<std::string>& environment) {
  auto from_environment = settings_from_environment(environment);
  if (!from_environment) return from_environment.error();
  const Settings& environment_settings = *from_environment;
  Settings all;
  for (const Settings* source : {&given, &environment_settings}) {
    const Setting* const config = find(*source, "config");
    if (!config) continue;
    const std::string& path = config->values.back();
    auto text = read_text(path, config->place);
    if (!text) return text.error();
    auto from_file = settings_from_file(*text, path);
    if (!from_file) return from_file.error();
    all = std::move(*from_file);
    break;
  }
  for (const Settings* later : {&environment_settings, &given})
    for (const auto& [name, setting] : *later) all.insert_or_assign(name, setting);
  return all;
}

Result<Parsed> parse_or_error(const std::vector<std::string>& arguments,
                              std::vector<std::string> environment,
                              const launcher::machine::Machine& machine) {
  auto line = read_command_line(arguments);
  if (!line) return line.error();
  // --help and --version must work whatever else is wrong.
  if (find(line->settings, "help") || find(line->settings, "version"))
    return Parsed(*answer_of_command(line->settings, {}));
  auto all = merged(line->settings, environment);
  if (!all) return all.error();
  if (auto answer = answer_of_command(line->settings, *all)) return Parsed(std::move(*answer));
  if (line->program.empty()) return Error{fmt::format("no program given; {}", usage_line)};
  const launcher::hosts::Variables variables = launcher::hosts::to_variables(environment);
  auto spec = to_spec(*all, variables, machine);
  if (!spec) return spec.error();
  if (is_python(line->program)) {
    auto command = python_command(std::move(line->program), environment);
    if (!command) return command.error();
    line->program = std::move(*command);
  }
  spec->argv = std::move(line->program);
  fit_to_slurm(spec->saving, variables);
  spec->caller_environment = std::move(environment);
  const auto passed =
      launcher::machine::passed_environment(spec->caller_environment, spec->environment, true);
  if (!passed) return passed.error();
  return Parsed(std::move(*spec));
}

}  // namespace

Result<Settings> settings_from_file(const std::string& text, const std::string& path) {
  Settings settings;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const int first = ++number;
    for (std::string more; array_is_open(line) && std::getline(lines, more); ++number)
      line += ' ' + more.substr(0, more.find('#'));
    // Parse one entry at a time, because CLI11 does not report line numbers.
    std::istringstream entry(line);
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(entry)) {
      const std::string place = fmt::format("{}:{}", path, first);
      if (!item.parents.empty())
        return Error{fmt::format("{}: sections are not used; write name = value", place)};
      std::string name = item.name;
      std::ranges::replace(name, '_', '-');
      const auto flag = std::ranges::find_if(flags, [&](const Flag& one) {
        return std::ranges::count(spellings(one), (name.size() == 1 ? "-" : "--") + name) > 0;
      });
      if (flag == flags.end())
        return Error{fmt::format("{}: unknown key {}{}", place, item.name, suggestion(name))};
      name = flag->name;
      if (flag->kind == Kind::command || flag->name == FlagName("config"))
        return Error{fmt::format("{}: {} belongs on the command line", place, name)};
      if (settings.contains(name))
        return Error{fmt::format("{}: {} is given twice; it was first given at {}", place, name,
                                 settings[name].place)};
      if (item.inputs.empty() || (flag->kind == Kind::value && item.inputs.size() != 1))
        return Error{fmt::format("{}: {} takes one value; write {} = \"...\"", place, name, name)};
      settings[name] = {item.inputs, Source::file, fmt::format("{}: {}", place, name)};
    }
  }
  return settings;
}

Parsed parse(int argc, const char* const* argv, const char* const* env,
             const launcher::machine::Machine& machine) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  std::vector<std::string> environment;
  for (; env && *env; ++env) environment.emplace_back(*env);
  auto parsed = parse_or_error(arguments, std::move(environment), machine);
  if (parsed) return std::move(*parsed);
  return PrintAndExit{fmt::format("elasticrun: {}\n", parsed.error().text), exit_code::usage};
}

}  // namespace elasticrun::cli::run
