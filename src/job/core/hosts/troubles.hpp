// What goes wrong with hosts, told so that a person can read it: one line for each trouble, and one
// for all hosts that have the same.
//
// A switch that fails takes sixty hosts with it, and a person wants to read one line, not sixty. So
// a trouble waits a moment for others like it. Alike are texts that differ only in the host's name
// and in words with digits in them (addresses, fingerprints, counts). Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace elasticrun::job::hosts {

class Troubles {
 public:
  // What was told of that host already, and is still so, is not told again.
  void add(const std::string& host, const std::string& text, Time now);
  // That host works.
  void over(const std::string& host) { last_.erase(host); }
  // The lines that are due; `all`: those that still wait as well.
  std::vector<std::string> tell(Time now, bool all = false);
  // When the next line is due.
  Time wake_at() const;

 private:
  struct Group {
    std::string pattern;  // what texts that are alike have in common
    std::string text;     // of the first host
    std::vector<std::string> hosts;
    Time due{};
  };
  std::vector<Group> groups_;                // in the order of their first
  std::map<std::string, std::string> last_;  // pattern of a host's present trouble
};

}  // namespace elasticrun::job::hosts
