// Every wait of the program has a deadline, and this is the only table of them: the flags, the
// manual and the checks are made from it.
//
// Deadlines depend on each other: a host must count as lost (agent-timeout) before its lease has
// ended, or the controller would not wait for the lease to run out. So the table also says which
// deadline must be shorter than which.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace elasticrun::job {

struct Deadlines {
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration agent_timeout = std::chrono::seconds(5);
  Duration lease = std::chrono::seconds(10);
  Duration abort_timeout = std::chrono::seconds(5);
  Duration prepare_timeout = std::chrono::seconds(30);
  Duration transfer_timeout = std::chrono::seconds(30);
  Duration start_timeout = std::chrono::minutes(5);
  Duration hung = std::chrono::minutes(10);
  Duration epoch_timeout = std::chrono::hours(2);
  Duration grace = std::chrono::seconds(10);
  Duration orphan_grace = std::chrono::seconds(10);
  Duration settle = std::chrono::seconds(10);
  Duration straggler_time = std::chrono::seconds(30);
  Duration sample_interval = std::chrono::milliseconds(500);
  Duration minimum_timeout = std::chrono::minutes(10);
  Duration discovery_interval = std::chrono::seconds(1);
  Duration discovery_timeout = std::chrono::seconds(30);
  Duration policy_timeout = std::chrono::seconds(5);

  bool operator==(const Deadlines&) const = default;
};

struct DeadlineRow {
  std::string_view name;      // of the flag, without dashes
  std::string_view standard;  // the default as a user writes it
  Duration Deadlines::*member;
  std::string_view shorter_than;  // name of a row whose deadline must be longer; empty: none
  std::string_view meaning;
};

inline constexpr DeadlineRow deadline_table[] = {
    {"heartbeat", "500ms", &Deadlines::heartbeat, "agent-timeout",
     "between two signs of life of a host"},
    {"agent-timeout", "5s", &Deadlines::agent_timeout, "lease", "silence that makes a host lost"},
    {"lease", "10s", &Deadlines::lease, "", "without news from here a host kills its workers"},
    {"abort-timeout", "5s", &Deadlines::abort_timeout, "hung",
     "for a worker to answer that its step is closed"},
    {"prepare-timeout", "30s", &Deadlines::prepare_timeout, "hung",
     "for all workers to form the next group"},
    {"transfer-timeout", "30s", &Deadlines::transfer_timeout, "hung",
     "without a byte of the state moved while workers wait for it"},
    {"start-timeout", "5m", &Deadlines::start_timeout, "",
     "from starting a worker until it is ready to train"},
    {"hung", "10m", &Deadlines::hung, "", "without a committed step a worker has hung"},
    {"epoch-timeout", "2h", &Deadlines::epoch_timeout, "",
     "for one call of on_epoch, instead of --hung"},
    {"grace", "10s", &Deadlines::grace, "", "from a gentle stop to a kill"},
    {"orphan-grace", "10s", &Deadlines::orphan_grace, "",
     "workers outlive this program by it; like --grace if not set, at most the lease"},
    {"settle", "10s", &Deadlines::settle, "", "at one size before the next decision"},
    {"straggler-time", "30s", &Deadlines::straggler_time, "",
     "a worker must be slow by before it is replaced"},
    {"sample-interval", "500ms", &Deadlines::sample_interval, "hung",
     "between two reports of a worker"},
    {"minimum-timeout", "10m", &Deadlines::minimum_timeout, "",
     "with fewer workers than the minimum before giving up"},
    {"discovery-interval", "1s", &Deadlines::discovery_interval, "",
     "between two runs of --host-discovery"},
    {"discovery-timeout", "30s", &Deadlines::discovery_timeout, "",
     "for one run of --host-discovery"},
    {"policy-timeout", "5s", &Deadlines::policy_timeout, "", "for one answer of --policy exec:"},
};

// Whether 0 is allowed. For these deadlines 0 means "at once"; any other wait of 0 would always
// time out.
constexpr bool may_be_zero(std::string_view name) {
  return name == "grace" || name == "orphan-grace" || name == "settle";
}

// An error message if these deadlines are too short or contradict each other; empty if they are
// fine.
inline std::string deadline_mistake(const Deadlines& deadlines) {
  for (const DeadlineRow& row : deadline_table) {
    const Duration own = deadlines.*row.member;
    if (own <= Duration::zero() && !may_be_zero(row.name))
      return "--" + std::string(row.name) + ": 0 is too short; the default is " +
             std::string(row.standard);
    for (const DeadlineRow& other : deadline_table)
      if (other.name == row.shorter_than && own >= deadlines.*other.member)
        return "--" + std::string(row.name) + ": " + to_text(own) + " must be shorter than --" +
               std::string(other.name) + " (" + to_text(deadlines.*other.member) + ")";
  }
  return {};
}

}  // namespace elasticrun::job
