// Which hosts no worker needs any more, and since when; they are given back where that is worth
// something (--slurm-shrink). Pure.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::job::hosts {

class UnusedHosts {
 public:
  // A host is given back when it was unused for `patience`; 0: none is.
  explicit UnusedHosts(Duration patience) : patience_(patience) {}
  bool looked_for() const { return patience_ > Duration::zero(); }

  // Of all these `hosts` the `used` ones have workers, or are wanted for some. The `free` hosts are
  // others, which the job has let go: they need no patience.
  void look(const std::vector<HostId>& hosts, const std::set<HostId>& used, Time now,
            const std::set<HostId>& free = {});
  Time wake_at() const;
  // Those that were unused for the patience, and with them each that was for half of it: Slurm may
  // take nodes back only once. None is returned again, unless it is refused or its agent is up
  // again.
  std::vector<HostId> take(Time now);
  // It was not taken back; it is tried again, but not soon.
  void refused(HostId host, Time now);
  // It is the job's again.
  void came(HostId host) { given_.erase(host); }

 private:
  Time due(HostId host, Time since) const;

  const Duration patience_;
  std::map<HostId, Time> since_;       // of the unused ones
  std::map<HostId, Time> not_before_;  // of those that were refused
  std::set<HostId> given_;
};

}  // namespace elasticrun::job::hosts
