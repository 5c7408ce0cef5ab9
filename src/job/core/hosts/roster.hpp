// The hosts a job knows: those it was given, those that joined by themselves, and all it has ever
// met, each under its number. Pure.
//
// A host that leaves the list and comes back keeps its number, because its agent may still be
// there; and what is over (a last line of output, an exit) is still told with its host's name.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/core/terms/events.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/hosts/plan.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::hosts {

class Roster {
 public:
  // `default_slots` (>= 1) count for a host that does not say; with `slots_are_gpus` only until its
  // agent has told how many GPUs it has, if any.
  explicit Roster(int default_slots = 1, bool slots_are_gpus = false)
      : default_slots_(default_slots), slots_are_gpus_(slots_are_gpus) {}

  // Instead of those that were given before.
  void give(const std::vector<launcher::hosts::Host>& hosts);
  // The number of the host whose agent greets, a new one where it joins by itself. An error when
  // there is a given one of that name, or what it says of itself makes no sense.
  Result<HostId> admit(const wire::Hello& hello);
  // An agent is about to be started there, or is there: its number, from 1.
  std::uint32_t next_run(HostId host) { return ++runs_[host]; }
  bool had_run(HostId host, std::uint32_t run) const;
  // Its agent is there. What is news: it has joined; or it was given, and there are other slots
  // now.
  enum class News { none, joined, slots };
  News up(HostId host, const wire::Hello& hello);
  // Its agent has gone. What is news: it had joined; or slots had been lost, which it may have
  // again when it comes back.
  News down(HostId host);

  // A GPU there is lost, and the slot with it until the host goes. False: it was none of the job's.
  bool lose(HostId host, std::int32_t slot);

  // Those there are, in rank order: who joined comes last.
  launcher::hosts::Plan plan();
  // The slots of some are guessed until their agents are there.
  bool guesses() const;
  // What the host's slots 0, 1, ... stand for, as CUDA names it; empty: it is lost. Fewer than
  // slots: the others are no GPUs.
  std::vector<std::string> gpus(HostId host) const;
  bool contains(HostId host) const { return met_.contains(host); }
  const launcher::hosts::Host& at(HostId host) const { return met_.at(host); }
  std::string name(HostId host) const;
  // Those that are new, or were given again, since it was asked last.
  job::HostsMet take_met();

  // Where programs that want MASTER_ADDR and MASTER_PORT find rank 0, which is on that host;
  // `alone`: all others are, too.
  struct Meeting {
    std::string address;
    int port = 0;
  };
  Meeting meeting_on(HostId host, bool alone) const;

 private:
  void meet(HostId id, const launcher::hosts::Host& host);
  Result<HostId> number_for_newcomer(const wire::Hello& hello);
  bool is_given(const launcher::hosts::Host& host) const;
  int slots_of(HostId id, const launcher::hosts::Host& host) const;
  void heard(HostId host, const wire::Hello& hello);
  bool is_lost(HostId host, std::int32_t slot) const;

  const int default_slots_;
  const bool slots_are_gpus_;
  launcher::hosts::HostBook book_;
  std::vector<launcher::hosts::Host> given_;
  std::map<HostId, launcher::hosts::Host> expected_;  // numbered, and not up yet
  std::map<HostId, launcher::hosts::Host> joined_;
  std::map<HostId, launcher::hosts::Host> met_;
  job::HostsMet untold_;
  std::map<HostId, std::uint32_t> runs_;  // agents that were started there so far
  std::map<HostId, Meeting> meetings_;
  std::map<HostId, std::vector<std::string>> gpus_;  // of all whose agents have been there
  std::map<HostId, std::set<std::int32_t>> lost_;    // slots of hosts that are up; never empty sets
  // Who was not heard yet is thought to be like the last who was: a cluster has one kind of hosts.
  int guess_ = default_slots_;
};

}  // namespace elasticrun::job::hosts
