// The deadlines that a user can set, in one table: the flags, the manual and the checks are made
// from it. A deadline that nobody can set stands beside the code that waits.
//
// Deadlines depend on each other: a host must count as lost (agent-timeout) before its lease has
// ended, or the controller would not wait for the lease to run out. So the table also says which
// deadline must be shorter than which.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace elasticrun::job {

struct Deadlines {
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration agent_timeout = std::chrono::seconds(5);
  Duration lease = std::chrono::seconds(10);
  Duration standstill_timeout = std::chrono::hours(1);
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
  Duration save_timeout = std::chrono::minutes(10);

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
     "send a sign of life of a host this often"},
    {"agent-timeout", "5s", &Deadlines::agent_timeout, "lease",
     "take a host for lost after this silence"},
    {"lease", "10s", &Deadlines::lease, "",
     "let no worker train after this time without news from elasticrun"},
    {"standstill-timeout", "1h", &Deadlines::standstill_timeout, "",
     "keep workers this long while elasticrun is stopped"},
    {"abort-timeout", "5s", &Deadlines::abort_timeout, "hung",
     "wait this long for a worker to answer that its step is closed"},
    {"prepare-timeout", "30s", &Deadlines::prepare_timeout, "hung",
     "wait this long for all workers to form the next group"},
    {"transfer-timeout", "30s", &Deadlines::transfer_timeout, "hung",
     "wait this long without a byte of the state moving"},
    {"start-timeout", "5m", &Deadlines::start_timeout, "",
     "wait this long for a started worker to be ready to train"},
    {"hung", "10m", &Deadlines::hung, "",
     "take a worker for hung after this time without a committed step"},
    {"epoch-timeout", "2h", &Deadlines::epoch_timeout, "",
     "allow one call of on_epoch this time, instead of --hung"},
    {"grace", "10s", &Deadlines::grace, "", "wait this long between a gentle stop and a kill"},
    {"orphan-grace", "10s", &Deadlines::orphan_grace, "",
     "let workers outlive elasticrun by this time; like --grace, at most the lease"},
    {"settle", "10s", &Deadlines::settle, "",
     "stay at one size this long before the next decision"},
    {"straggler-time", "30s", &Deadlines::straggler_time, "",
     "replace a worker that has been slow for this time"},
    {"sample-interval", "500ms", &Deadlines::sample_interval, "hung",
     "let workers report this often"},
    {"minimum-timeout", "10m", &Deadlines::minimum_timeout, "",
     "give up after this time with fewer workers than the minimum"},
    {"discovery-interval", "1s", &Deadlines::discovery_interval, "",
     "run --host-discovery this often"},
    {"discovery-timeout", "30s", &Deadlines::discovery_timeout, "",
     "allow one run of --host-discovery this time"},
    {"policy-timeout", "5s", &Deadlines::policy_timeout, "",
     "allow one answer of --policy exec: this time"},
    {"save-timeout", "10m", &Deadlines::save_timeout, "",
     "give up a save that is not whole by then"},
};

// Whether 0 is allowed. For these deadlines 0 means "at once"; any other wait of 0 would always
// time out.
constexpr bool may_be_zero(std::string_view name) {
  return name == "grace" || name == "orphan-grace" || name == "settle";
}

// An error names the first deadline that is too short or contradicts another one.
inline Result<void> check(const Deadlines& deadlines) {
  for (const DeadlineRow& row : deadline_table) {
    const Duration own = deadlines.*row.member;
    if (own <= Duration::zero() && !may_be_zero(row.name))
      return Error{"--" + std::string(row.name) + ": 0 is too short; the default is " +
                   std::string(row.standard)};
    for (const DeadlineRow& other : deadline_table)
      if (other.name == row.shorter_than && own >= deadlines.*other.member)
        return Error{"--" + std::string(row.name) + ": " + to_text(own) +
                     " must be shorter than --" + std::string(other.name) + " (" +
                     to_text(deadlines.*other.member) + ")"};
  }
  return {};
}

}  // namespace elasticrun::job
