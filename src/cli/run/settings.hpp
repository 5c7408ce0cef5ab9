// Values of flags as texts, each with the place it came from, before anybody looks at their
// meaning.
//
// Command line, environment and file are gathered into one such table first and converted once
// after, so a wrong value gives the same message wherever it was written, and the message names
// that place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::cli::run {

enum class Source { file, environment, command_line };  // a later one wins

struct Setting {
  std::vector<std::string> values;
  Source source = Source::command_line;
  std::string place;  // begins errors: "--np", "ELASTICRUN_NP", "job.toml:3: np"
};

// By the name of the flag.
using Settings = std::map<std::string, Setting, std::less<>>;

// The variables of ours in an environment (NAME=VALUE); an empty value counts as not set. A name
// that is one typing mistake away from one of ours is an error.
Result<Settings> settings_from_environment(const std::vector<std::string>& environment);

// What --show-config prints: a file that --config can read, with origins as comments.
std::string show(const Settings& settings);

// The text of a file, `place` begins the error. At most 16 MiB.
Result<std::string> read_text(const std::string& path, std::string_view place);

// "; did you mean --np?" for a name of a flag that is not known, or empty.
std::string suggestion(std::string_view name);

}  // namespace elasticrun::cli::run
