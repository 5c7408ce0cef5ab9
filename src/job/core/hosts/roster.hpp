// The hosts a job knows: those it was given, those that joined by themselves, and all it has ever
// met, each under its number. Pure.
//
// A host that leaves the list and comes back keeps its number, because its agent may still be
// there. And what comes late from a host that has gone (a last line of output, an exit) is still
// reported with the host's name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/core/terms/events.hpp"
#include "launcher/hosts/hosts.hpp"
#include "launcher/hosts/plan.hpp"
#include "wire/greeting.hpp"

namespace elasticrun::job::hosts {

class Roster {
 public:
  // A host that does not say how many slots it has gets `default_slots` (>= 1). With
  // `slots_are_gpus` only until its agent has reported its GPUs: then one slot per GPU, at least 1.
  explicit Roster(int default_slots = 1, bool slots_are_gpus = false)
      : default_slots_(default_slots), slots_are_gpus_(slots_are_gpus) {}

  // Replaces the hosts that were given before.
  void give(const std::vector<launcher::hosts::Host>& hosts);
  // Returns the number of the host whose agent sends this Hello, `started`; a host that joins by
  // itself (nullopt) gets one. An error when another host has its name already, or the Hello makes
  // no sense.
  Result<HostId> admit(const wire::Hello& hello, std::optional<HostId> started = {});
  // An agent is about to be started there, or has joined: returns the number of its run, from 1.
  std::uint32_t next_run(HostId host) { return ++runs_[host]; }
  // The number of the last one; 0: there was none.
  std::uint32_t runs(HostId host) const;
  bool had_run(HostId host, std::uint32_t run) const;
  // Its agent is up. Returns `joined` if the host joined by itself, `slots` if its report changes
  // the job's slots, or if it joined and had been dropped.
  enum class News { none, joined, slots };
  News up(HostId host, const wire::Hello& hello);
  // Its agent has gone. Returns `joined` if the host had joined by itself, `slots` if it had lost
  // slots or was leaving: it may have them again when it comes back.
  News down(HostId host);

  // A GPU there is lost, and its slot with it until the host goes. False: the job does not use it.
  bool lose(HostId host, std::int32_t slot);

  // The host will soon go away: its slots are not used any more until it has gone. False: that was
  // known, or it is no host of the job.
  bool leaves(HostId host);

  // The host is given back: its slots are not used any more, unless keep() takes that back, or it
  // joins again.
  void give_back(HostId host) { left_out_[host] = Why::given_back; }
  void keep(HostId host) { left_out_.erase(host); }

  // A given host by its name.
  std::optional<HostId> given(const std::string& name);
  // Its slots are not used until it is resumed, whatever becomes of its agent.
  void drain(HostId host) { given_.drained.insert(host); }
  void resume(HostId host) { given_.drained.erase(host); }

  // The drained hosts, and those that were given before, are not now, and have not joined since.
  std::set<HostId> dropped() const;

  // The present hosts and slots in rank order; hosts that joined come last.
  launcher::hosts::Plan plan();
  // True: the slots of some given hosts are guessed, because their agents were never up.
  bool guesses() const;
  // The GPUs of the host's slots 0, 1, ..., as CUDA names them; an empty name: that GPU is lost.
  // Slots beyond the end of the list have no GPU.
  std::vector<std::string> gpus(HostId host) const;
  bool contains(HostId host) const { return met_.contains(host); }
  const launcher::hosts::Host& at(HostId host) const { return met_.at(host); }
  std::string name(HostId host) const;
  // The hosts that are new, or were given again, since the last call.
  HostsMet take_met();

  // MASTER_ADDR and MASTER_PORT for programs that want them: where they find rank 0, which is on
  // `host`. `alone`: all ranks are on that host.
  struct Meeting {
    std::string address;
    int port = 0;
  };
  Meeting meeting_on(HostId host, bool alone) const;
  // This port is unused there now; 0: none is known to be.
  void port_is_free(HostId host, int port);

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
  struct Given {
    std::vector<launcher::hosts::Host> hosts;
    std::set<HostId> dropped;
    std::set<HostId> drained;
  };
  Given given_;
  std::map<HostId, launcher::hosts::Host> expected_;  // about to join: admitted, not up yet
  std::map<HostId, launcher::hosts::Host> joined_;
  std::map<HostId, launcher::hosts::Host> met_;
  HostsMet untold_;
  std::map<HostId, std::uint32_t> runs_;  // number of the last run there
  std::map<HostId, Meeting> meetings_;
  std::map<HostId, std::vector<std::string>> gpus_;  // of hosts whose agents were ever up
  std::map<HostId, std::set<std::int32_t>> lost_;    // slots of hosts that are up; no set is empty
  enum class Why { leaving, given_back };            // a host is leaving only while it is up
  std::map<HostId, Why> left_out_;                   // hosts whose slots are not used
  // Slots of a host not heard from yet: as many as the last one heard from has, for a cluster
  // mostly has one kind of hosts.
  int guess_ = default_slots_;
};

}  // namespace elasticrun::job::hosts
