// What is said of the place where a job's hosts come from while it runs: each trouble once, and
// once that it is over. Pure; host_source.cpp looks and tells.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"

namespace elasticrun::job {

// What happened to the hosts of a job, or to the place where they come from, in words.
struct HostsNoted {
  bool well = false;  // a trouble is over
  std::string text;
};

class SourceNotes {
 public:
  // Between the two names of a rename there is no file for a moment.
  static constexpr Duration away_for_good = std::chrono::seconds(1);
  static constexpr int troubles_max = 5;  // of a program in a row, each another one

  // `name` is what a person calls it: a file, or the flag of a program. A program that is asked
  // every second has the same trouble each time and is heard once; a file is read once per change.
  SourceNotes(std::string name, bool asked_again);

  // Each look at which the file is not there or may not be read.
  std::optional<HostsNoted> away(const std::string& why, Time now);
  // Each look at which it may be read.
  std::optional<HostsNoted> back();
  // It was read, and is of no use.
  std::optional<HostsNoted> trouble(const std::string& what);
  // It was read, and names hosts.
  std::optional<HostsNoted> well();

 private:
  std::string name_;
  bool asked_again_;
  Time away_since_ = never;
  std::string away_;     // why, as told
  std::string trouble_;  // as told
  int troubles_ = 0;     // told in a row
};

}  // namespace elasticrun::job
