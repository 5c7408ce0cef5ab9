// The launch plan: which places for workers there are, in rank order, and which sizes a job can
// have.
//
// The size of a job is a number, but workers come and go by whole hosts as a rule: half a host
// costs as much as a whole one and slows its neighbours. So the sizes that can be had are the sums
// along the host file's order, and the autoscaler moves only between those. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::launcher::hosts {

// A place for one worker.
struct Slot {
  HostId host;
  std::string host_name;
  std::int32_t slot = 0;  // on its host, from 0
  double price = 0;       // its part of its host's, per hour; 0: not said

  bool operator==(const Slot&) const = default;
};

// Gives each host its number in the order in which the job meets hosts. A host that leaves the file
// and comes back keeps its number: its agent may still be there.
class HostBook {
 public:
  HostId meet(const Host& host);

 private:
  std::map<std::string, HostId> ids_;  // by key_of
};

struct Plan {
  std::vector<Slot> slots;         // in rank order of the first world
  std::vector<Slot> spares;        // of hosts marked spare, in the file's order
  std::vector<int> slots_by_host;  // of the hosts in `slots`, in order
};
// How many the job has there; `default_slots` (>= 1) counts for hosts that do not say.
int slots_of(const Host& host, int default_slots);
Plan make_plan(const std::vector<Host>& hosts, int default_slots, HostBook& book);

// Of slots in rank order: how many each host has, in the order of the hosts.
std::vector<int> count_by_host(const std::vector<Slot>& slots);

enum class Unit { host, slot };

struct Limits {
  int min = 1;        // workers
  int max = 0;        // workers; 0: as many as there are slots
  int min_hosts = 0;  // 0: not said
  int max_hosts = 0;  // 0: not said

  bool operator==(const Limits&) const = default;
};

// The slots of the first `max_hosts` hosts; 0: of all.
int slots_within(const std::vector<int>& slots_by_host, int max_hosts);

// The sizes a job can have, ascending: with Unit::slot every size within the limits, with
// Unit::host the ends of hosts. The largest size allowed and `start` (0: not said) are among them
// even where they cut a host in two, because a person asked for them. Empty when the limits leave
// nothing.
std::vector<int> reachable_sizes(const std::vector<int>& slots_by_host, Unit unit,
                                 const Limits& limits, int start);

}  // namespace elasticrun::launcher::hosts
