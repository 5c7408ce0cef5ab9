// What is logged, while a job runs, about the source of its hosts (a file or a program): each
// problem once, and once that it is over. Pure; host_source.cpp reads the source and passes on what
// comes out here.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "job/core/terms/events.hpp"

namespace elasticrun::job::hosts {

class SourceNotes {
 public:
  // A file that is replaced by renaming may be missing for a moment, which is no problem yet.
  static constexpr Duration away_for_good = std::chrono::seconds(1);
  static constexpr int troubles_max = 5;  // reported in a row for a program, each different

  // `name` is the user's name for the source: a file, or the flag of a program. `asked_again`: it
  // is a program that runs every second and has the same problem each time, which is reported once;
  // a file is read once per change.
  SourceNotes(std::string name, bool asked_again);

  // To be called at each look when the file is missing or cannot be read.
  std::optional<HostsNoted> away(const std::string& why, Time now);
  // To be called at each look when the file can be read.
  std::optional<HostsNoted> back();
  // The source was read, but is of no use.
  std::optional<HostsNoted> trouble(const std::string& what);
  // The source was read, and names hosts.
  std::optional<HostsNoted> well();

 private:
  std::string name_;
  bool asked_again_;
  Time away_since_ = never;
  std::string away_;     // why it is away, as last reported; empty: nothing was
  std::string trouble_;  // as last reported; empty: it is over
  int troubles_ = 0;     // reported in a row
};

}  // namespace elasticrun::job::hosts
