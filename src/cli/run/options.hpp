// The command line: flags, environment and configuration file become one JobSpec, or a text and
// an exit code, before anything is started.
//
// CLI11 only splits the command line and the file into texts. Merging, conversion and messages are
// ours (settings, convert), because CLI11 neither tells where a value came from nor names file and
// line in its errors.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/run/settings.hpp"
#include "job/spec.hpp"
#include "launcher/machine/machine.hpp"

namespace elasticrun::cli::run {

// Print this (to standard output when the code is 0, else to standard error) and exit.
struct PrintAndExit {
  std::string text;  // whole lines
  int code = 0;
};

using Parsed = std::variant<job::JobSpec, PrintAndExit>;

// `env` is as main gets it: NAME=VALUE, null at the end. Reads the host file and the configuration
// file, and runs the program of --host-discovery.
Parsed parse(int argc, const char* const* argv, const char* const* env,
             const launcher::machine::Machine& machine);

// The settings in the `text` of a configuration file; `path` names the file in errors.
Result<Settings> settings_from_file(const std::string& text, const std::string& path);

}  // namespace elasticrun::cli::run
