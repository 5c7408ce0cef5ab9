// The values of flags as texts, each with the place it came from, before they are interpreted.
//
// Command line, environment and file are first gathered into one such table, which is then
// converted once. So a wrong value gives the same message wherever it was written, and the message
// names that place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/flags.hpp"

namespace elasticrun::cli::run {

enum class Source { file, environment, command_line };  // a later one wins

struct Setting {
  std::vector<std::string> values;
  Source source = Source::command_line;
  std::string place;  // begins errors: "--np", "ELASTICRUN_NP", "job.toml:3: np"
};

// The key is the name of the flag.
using Settings = std::map<std::string, Setting, std::less<>>;

// Null when the flag is not set.
const Setting* find(const Settings& settings, FlagName name);

// The ELASTICRUN_ variables in an environment (NAME=VALUE); an empty value counts as not set. A
// name that is at most two typing mistakes away from that of a flag's variable is an error.
Result<Settings> settings_from_environment(const std::vector<std::string>& environment);

// What --show-config prints: a file that --config can read, with comments that say where each
// value came from.
std::string show(const Settings& settings);

// The content of a file of at most 16 MiB; `place` begins the error.
Result<std::string> read_text(const std::string& path, std::string_view place);

// A time, which must not be 0.
Result<Duration> time_above_zero(const Setting& setting);

// "; did you mean --np?" for an unknown flag's name without dashes; empty when no flag is near.
std::string suggestion(std::string_view name);

}  // namespace elasticrun::cli::run
