// The table of flags. One row defines the flag, its name in the environment, its key in a
// configuration file and its line of --help, so that these four cannot differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::cli {

enum class Kind {
  value,   // one value; if it is given several times, the last one counts
  list,    // every value counts
  toggle,  // no value
  command  // no value, and only on the command line
};

struct Flag {
  std::string_view name;   // without dashes; also the key in a configuration file
  std::string_view other;  // another spelling, with its dashes; empty: none
  std::string_view value;  // what --help calls the value; empty: the flag takes none
  Kind kind = Kind::value;
  std::string_view group;     // heading in --help
  std::string_view standard;  // the default as text; empty: none
  std::string_view help;
};

// All flags in the order of --help, those for the deadlines of job/deadlines.hpp included.
const std::vector<Flag>& flags();
const Flag* find_flag(std::string_view name);

// The flag with its dashes: "--max-batch", or "-x" when its name is one letter.
std::string spelled(const Flag& flag);
// "ELASTICRUN_MAX_BATCH"
std::string environment_name(const Flag& flag);

}  // namespace elasticrun::cli
