// The agents of a job's hosts: one row for each host on which an agent was ever wanted.
//
// A failed host is tried again while the job continues, and nothing waits for it until its agent is
// up. That is why a second start is a different state from the first.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/terms/state_table.hpp"

namespace elasticrun::job::hosts {

enum class HostState { absent, asked, up, failed, retried };

inline constexpr std::array host_states{
    Named<HostState>{HostState::absent, "absent", "nothing was asked of it"},
    Named<HostState>{HostState::asked, "asked", "its agent is being started"},
    Named<HostState>{HostState::up, "up", "its agent is there"},
    Named<HostState>{HostState::failed, "failed", "its agent has gone, or could not be started"},
    Named<HostState>{HostState::retried, "retried",
                     "its agent is being started again, and the job does not wait"},
};

enum class HostTurn { asked, came, went, freed };

inline constexpr std::array host_turns{
    Named<HostTurn>{HostTurn::asked, "a worker is wanted there"},
    Named<HostTurn>{HostTurn::came, "its agent came"},
    Named<HostTurn>{HostTurn::went, "its agent went"},
    Named<HostTurn>{HostTurn::freed, "its agent went, and the host was let go"},
};

using HostTransition = Transition<HostState, HostTurn>;

inline constexpr std::array host_transitions{
    HostTransition{HostState::absent, HostTurn::asked, HostState::asked},
    HostTransition{HostState::absent, HostTurn::came, HostState::up},  // the host joined by itself
    HostTransition{HostState::asked, HostTurn::came, HostState::up},
    HostTransition{HostState::asked, HostTurn::went, HostState::failed},
    HostTransition{HostState::up, HostTurn::went, HostState::failed},
    HostTransition{HostState::up, HostTurn::freed, HostState::absent},
    HostTransition{HostState::failed, HostTurn::asked, HostState::retried},
    HostTransition{HostState::failed, HostTurn::came, HostState::up},
    HostTransition{HostState::retried, HostTurn::came, HostState::up},
    HostTransition{HostState::retried, HostTurn::went, HostState::failed},
};

class Hosts {
 public:
  // Sets what is known of a host: its name and its machine type (empty: not known), and whether it
  // must stay a host of the job.
  void met(HostId host, const std::string& name, const std::string& type, bool stays);
  bool stays(HostId host) const;
  std::string name(HostId host) const;
  std::string type(HostId host) const;

  HostState state(HostId host) const;
  bool up(HostId host) const { return state(host) == HostState::up; }
  // Its last agent failed, or could not be started, and no other one has come since.
  bool failed(HostId host) const {
    return state(host) == HostState::failed || state(host) == HostState::retried;
  }
  // It has an agent, or one is being started.
  bool live(HostId host) const;
  std::vector<HostId> live() const;
  std::vector<HostId> in(HostState state) const;
  int count(HostState state) const { return counts_[static_cast<std::size_t>(state)]; }
  int failed() const { return count(HostState::failed) + count(HostState::retried); }
  bool none_live() const;

  // A worker is wanted there. True: the caller must start an agent.
  bool ask(HostId host);
  void came(HostId host, Time leased_until);
  void went(HostId host);
  void freed(HostId host);
  // It has said that it will soon go; forgotten when it has gone.
  void leaves(HostId host) { rows_[host].leaving = true; }
  void leaves_not(HostId host) { rows_[host].leaving = false; }
  bool leaving(HostId host) const;
  // It is given back, because no worker needs it; forgotten when it has gone.
  void give_back(HostId host) { rows_[host].given_back = true; }
  void keep(HostId host) { rows_[host].given_back = false; }
  bool given_back(HostId host) const;
  // The hosts that the job names no longer, with the number of workers that each has now.
  void drop(const std::map<HostId, std::size_t>& hosts);
  bool dropped(HostId host) const { return dropped_.contains(host); }
  const std::map<HostId, std::size_t>& dropped() const { return dropped_; }
  // A heartbeat came, which extends the lease.
  void prolong(HostId host, Time leased_until);
  // The end of the lease: if no heartbeat has come back by then, its workers make no step.
  Time leased_until(HostId host) const;

 private:
  struct Row {
    std::string name, type;
    HostState state = HostState::absent;
    Time leased_until{};
    bool leaving = false;
    bool given_back = false;
    bool stays = false;
  };
  void turn(HostId host, HostTurn turn);
  void forget(HostId host);

  IdMap<HostId, Row> rows_;
  std::map<HostId, std::size_t> dropped_;  // with the number of workers each had then
  std::array<int, host_states.size()> counts_{};
};

}  // namespace elasticrun::job::hosts
