// Problems of hosts, reported so that a user can read them: one line for each problem, shared by
// all hosts that have the same one.
//
// A switch that fails takes sixty hosts with it, and a user wants to read one line, not sixty. So a
// problem waits a moment for others like it. Two texts are alike when they differ only in the
// host's name and in words with digits in them (addresses, fingerprints, counts). Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace elasticrun::job::hosts {

class Troubles {
 public:
  // Adds a problem of that host, unless it is the one added last for it and is not over.
  void add(const std::string& host, const std::string& text, Time now);
  // The host works again.
  void over(const std::string& host) { last_.erase(host); }
  // Takes the lines that are due; `all`: also those that still wait for others like them.
  std::vector<std::string> tell(Time now, bool all = false);
  // When the next line is due.
  Time wake_at() const;

 private:
  struct Group {
    std::string pattern;  // what the texts have in common
    std::string text;     // of the first host
    std::vector<std::string> hosts;
    Time due{};
  };
  std::vector<Group> groups_;                // in the order of their first problem
  std::map<std::string, std::string> last_;  // pattern of each host's present problem
};

}  // namespace elasticrun::job::hosts
