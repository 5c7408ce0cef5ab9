// Hosts whose control connection is lost: dead, or about to dial again?
//
// A firewall that is reloaded resets every connection at once, and costs nothing when hosts are
// given a moment to come back. A host that has lost its power never comes back, and its workers
// should be replaced at once. What tells the two apart: the agent's watchdog says that it is dead,
// nobody dials for half a second, or, where a worker of another host finds its peer there gone as
// well, for some milliseconds: the firewall may have reset that connection, too. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::rendezvous {

class Suspects {
 public:
  static constexpr Duration patience = std::chrono::milliseconds(500);
  // For one that is accused.
  static constexpr Duration moment = std::chrono::milliseconds(15);
  // More for each of them: one after the other is greeted.
  static constexpr Duration patience_each = std::chrono::milliseconds(2);

  struct Lost {
    HostId host;
    std::string reason;
  };

  // Its connection is lost. Once more: it has dialled in vain, and has no more time for that.
  void away(HostId host, const std::string& reason, Time now);
  // It has dialled again, or is known to be gone.
  void settled(HostId host) { hosts_.erase(host); }
  bool suspected(HostId host) const { return hosts_.contains(host); }
  std::size_t size() const { return hosts_.size(); }
  // A worker of another host has lost its connection to one there. That may be heard before the
  // control connection is known to be lost.
  void accused(HostId host, const std::string& reason, Time now);
  // A message came from that host: what was said of it a while ago does not explain a later loss of
  // its connection.
  void heard(HostId host, Time now);

  // We stood still ourselves for that time.
  void stood_still(Duration time);

  // Who is given up, each once. `others`: hosts that are connected. Where there are none, accusers
  // and accused have met with the same trouble, and nobody's word counts.
  std::vector<Lost> check(std::size_t others, Time now);
  Time wake_at(std::size_t others) const;

 private:
  struct Suspect {
    Time since{};
    std::string reason;
    bool accused = false;
  };
  struct Accusation {
    Time at{};
    std::string reason;
  };
  Time due(const Suspect& suspect, std::size_t others) const;

  std::map<HostId, Suspect> hosts_;
  std::map<HostId, Accusation> early_;  // of hosts that are connected
};

}  // namespace elasticrun::rendezvous
