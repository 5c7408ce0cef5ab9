// Who is to blame when a world could not be formed, or broke before its first step.
//
// A link between two workers may be bad while both of them are well, and the first who notices is
// not the one at fault: a rank that fails closes its connections, and its neighbours complain about
// that. So all members say whom they had trouble with, and the fewest whose absence settles every
// complaint are to blame: newcomers before members, since nobody needs them yet, and then those
// who have trouble with most others: one that can reach nobody names many who are well. A member is
// never blamed for its own words about one other alone.
//
// Greedy and not exact: the smallest cover of a graph is hard to find, and one bad link or one bad
// worker at a time is what happens. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

struct Blamed {
  WorkerId worker;
  std::string why;  // names the link, for a person
};

class Complaints {
 public:
  // `late`: when all had been told already to give the group up.
  void add(WorkerId from, const std::vector<wire::Complaint>& complaints, bool late = false);
  // The next attempt to form a world begins; the complaints of this one are over, but not who was
  // named in them, nor who complained.
  void next_attempt();
  // A world has stepped.
  void forget() { attempts_.clear(); }

  // Among those who are still there. `needed` is never blamed: nobody else holds the state.
  // `somebody_died`: in this attempt.
  std::vector<Blamed> verdict(const std::set<WorkerId>& newcomers,
                              const std::set<WorkerId>& members, WorkerId needed = {},
                              bool somebody_died = false) const;

 private:
  struct Edge {
    WorkerId from;
    wire::Complaint complaint;
    bool late = false;
  };
  struct Said {  // of one worker
    std::size_t complaints = 0;
    bool more_than_waiting = false;
  };
  bool has_complained(WorkerId worker) const;
  int failed_attempts(WorkerId worker) const;

  // More of one worker say nothing new, and what comes from the network has a limit.
  static constexpr std::size_t of_one_max = 16;

  IdMap<WorkerId, Said> said_;        // in this attempt
  std::vector<Edge> edges_;           // in the order in which they came
  std::map<WorkerId, int> attempts_;  // earlier ones, in which somebody named it, or it somebody
};

}  // namespace elasticrun::rendezvous
