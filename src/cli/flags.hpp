// The table of flags: one row makes the flag, its name in the environment, its key in a
// configuration file and its line of --help, so that these four cannot differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::cli {

enum class Kind {
  value,   // one value; of several the last counts
  list,    // every value counts
  toggle,  // no value
  command  // no value, and only on the command line
};

struct Flag {
  std::string_view name;   // without dashes: the key in a file
  std::string_view other;  // one further spelling, with dashes; or empty
  std::string_view value;  // what --help calls the value
  Kind kind = Kind::value;
  std::string_view group;     // heading in --help
  std::string_view standard;  // the default in words; empty: none
  std::string_view help;
};

// In the order of --help; deadlines are those of job/deadlines.hpp.
const std::vector<Flag>& flags();
const Flag* find_flag(std::string_view name);

// "--max-batch", or "-x" where that is all there is.
std::string spelled(const Flag& flag);
// "ELASTICRUN_MAX_BATCH"
std::string environment_name(const Flag& flag);

}  // namespace elasticrun::cli
