// The launch plan: the slots for workers, in rank order, and the sizes that a job can have.
//
// The size of a job is a number, but workers usually come and go by whole hosts: half a host costs
// as much as a whole one and slows its neighbours. So the reachable sizes are the running sums of
// slots in the order of the host file, and the autoscaler moves only between those. Pure.
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
  std::int32_t slot = 0;  // number on its host, from 0
  double price = 0;       // the slot's share of its host's price, per hour; 0: not given

  bool operator==(const Slot&) const = default;
};

// Assigns each host its id, in the order in which the job first sees the hosts. A host that leaves
// the file and comes back keeps its id: its agent may still be running.
class HostBook {
 public:
  HostId meet(const Host& host);

 private:
  std::map<std::string, HostId> ids_;  // by key_of
};

struct Plan {
  std::vector<Slot> slots;         // in rank order of the first world
  std::vector<Slot> spares;        // slots of hosts marked spare, in the file's order
  std::vector<int> slots_by_host;  // number of slots of each host in `slots`, in order
};
// The number of slots the job uses on the host. `default_slots` (>= 1) is for a host whose entry
// gives no number.
int slots_of(const Host& host, int default_slots);
Plan make_plan(const std::vector<Host>& hosts, int default_slots, HostBook& book);

// The number of slots of each host, in the order of the hosts. `slots` is in rank order.
std::vector<int> count_by_host(const std::vector<Slot>& slots);

enum class Unit { host, slot };

struct Limits {
  int min = 1;        // workers
  int max = 0;        // workers; 0: as many as there are slots
  int min_hosts = 0;  // 0: no limit
  int max_hosts = 0;  // 0: no limit

  bool operator==(const Limits&) const = default;
};

// The number of slots on the first `max_hosts` hosts; on all hosts when `max_hosts` is 0.
int slots_within(const std::vector<int>& slots_by_host, int max_hosts);

// The sizes a job can have, ascending: every size within the limits with Unit::slot, only sums of
// whole hosts with Unit::host. The largest size allowed and `start` (0: not given) are included
// even where they use part of a host, because the user asked for them. Empty when no size is within
// the limits.
std::vector<int> reachable_sizes(const std::vector<int>& slots_by_host, Unit unit,
                                 const Limits& limits, int start);

}  // namespace elasticrun::launcher::hosts
