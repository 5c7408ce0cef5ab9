// One call of elasticrun, from the command line to the exit code.
#pragma once

namespace elasticrun::cli::run {

// `env` is as main gets it: NAME=VALUE, null at the end.
int run(int argc, const char* const* argv, const char* const* env);

}  // namespace elasticrun::cli::run
