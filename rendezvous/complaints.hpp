// Which workers are to blame when a world could not be formed, or broke before its first step.
//
// A link between two workers may be bad while both of them are well, and the first worker to notice
// need not be the one at fault: a rank that fails closes its connections, and its neighbours
// complain about that. So all members report the peers they had problems with, and the smallest set
// of workers whose absence settles every complaint is to blame. Newcomers come before members,
// since no world needs them yet; then come the workers that have problems with the most others,
// because a worker that can reach no peer names many that are well. A member is never blamed only
// because it complained about one other worker.
//
// Greedy and not exact: the smallest vertex cover of a graph is hard to find, and in practice there
// is one bad link or one bad worker at a time. Pure.
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
  std::string why;  // names the link, for the user
};

class Complaints {
 public:
  // `late`: the complaints came after all members had been ordered to abort the group.
  void add(WorkerId from, const std::vector<wire::Complaint>& complaints, bool late = false);
  // The next attempt to form a world begins. The complaints of this attempt are dropped; that a
  // worker was named in one, or made one, is remembered.
  void next_attempt();
  // To be called when a world has stepped.
  void forget() { attempts_.clear(); }

  // The workers to blame, among `newcomers` and `members`, which are those still there. `needed` is
  // never blamed: it alone holds the state. `somebody_died`: a worker died in this attempt.
  std::vector<Blamed> verdict(const std::set<WorkerId>& newcomers,
                              const std::set<WorkerId>& members, WorkerId needed = {},
                              bool somebody_died = false) const;

 private:
  struct Edge {
    WorkerId from;
    wire::Complaint complaint;
    bool late = false;
  };
  struct Said {  // by one worker
    std::size_t complaints = 0;
    bool more_than_waiting = false;  // at least one complaint was not just about waiting
  };
  bool has_complained(WorkerId worker) const;
  int failed_attempts(WorkerId worker) const;

  // Further complaints of one worker add nothing, and input from the network must have a limit.
  static constexpr std::size_t of_one_max = 16;

  IdMap<WorkerId, Said> said_;        // in this attempt
  std::vector<Edge> edges_;           // in the order in which they came
  std::map<WorkerId, int> attempts_;  // earlier attempts in which it was named or complained
};

}  // namespace elasticrun::rendezvous
