// Hosts whose control connection is lost: dead, or about to dial again?
//
// A firewall that is reloaded resets every connection at once, and does no harm if hosts are given
// a moment to come back. A host that has lost its power never comes back, and its workers should be
// replaced at once. What shows that a host is dead: the agent's watchdog reports the agent dead, or
// the agent does not dial again within half a second. A few milliseconds are enough where a worker
// of another host reports that its peer there is gone, too; they are still needed, since the
// firewall may have reset that connection as well. Pure.
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
  // Patience for a host that is accused.
  static constexpr Duration moment = std::chrono::milliseconds(15);
  // Added for each suspected host, since hosts that come back are greeted one after the other.
  static constexpr Duration patience_each = std::chrono::milliseconds(2);

  struct Lost {
    HostId host;
    std::string reason;
  };

  // The host's connection is lost. A second call, after it has dialled in vain, gives it no more
  // time.
  void away(HostId host, const std::string& reason, Time now);
  // The host has dialled again, or is known to be gone.
  void settled(HostId host) { hosts_.erase(host); }
  bool suspected(HostId host) const { return hosts_.contains(host); }
  std::size_t size() const { return hosts_.size(); }
  // A worker of another host has lost its connection to a worker on this host. This may be reported
  // before the control connection is known to be lost.
  void accused(HostId host, const std::string& reason, Time now);
  // A message came from this host: an accusation made a while ago does not explain a later loss of
  // its connection.
  void heard(HostId host, Time now);

  // The controller itself stood still for this long.
  void stood_still(Duration time);

  // The hosts to give up, each once. `others`: number of hosts that are connected. Where there are
  // none, accusers and accused have the same problem, and accusations do not count.
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
