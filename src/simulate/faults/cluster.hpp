// The whole job of one seed: the real core of a job, simulated hosts, and all faults.
//
// This is the one loop of the simulation: an event happens, the cores decide, and their actions
// take effect after a random delay. The seed determines everything: the same seed gives the same
// run on every machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/core/job.hpp"
#include "simulate/faults/host.hpp"
#include "simulate/faults/scene.hpp"
#include "simulate/faults/stepping.hpp"

namespace elasticrun::simulate::faults {

struct Outcome {
  std::uint64_t events = 0;
  int faults = 0;
  int worlds = 0;
  int exit_code = 0;
  std::string last_words;
  std::string broken_rule;  // name of the invariant that was broken; empty: none
  std::string broken_text;
};

class Cluster {
 public:
  // `tell` gets a line for each fault and each event that the controller records; may be null.
  using Tell = std::function<void(Time, const std::string&)>;
  Cluster(const Scene& scene, Tell tell);
  Outcome run();

 private:
  void feed(const job::JobEvent& event);
  void arm();
  void act(const job::StartAgent& action);
  void act(const job::KillAgent& action);
  void act(const job::StartWorker& action);
  void act(const job::Order& action);
  void act(const job::Deliver& action);
  void act(const job::Record& action);
  void act(const job::Log& action);
  void act(const job::Ranked&) {}
  void act(const job::Ask&) {}
  void act(const job::SealSave& action);
  void act(const job::DropSave& action);
  void act(const job::GiveBack& action);
  void act(const job::Finish& action);
  void tell_slots();
  void watch_for_the_end();

  bool an_end_is_unknown() const;
  void look_around();
  void see_kill(WorkerId worker);
  std::shared_ptr<Agent> make_agent(HostId host);

  // ---- faults.cpp: carrying out faults
  void befall(const Fault& fault);
  void happen(const Fault& fault);
  bool is_bearable(const Fault& fault) const;
  std::set<WorkerId> victims(const Fault& fault) const;
  bool is_well(const Agent& agent, HostId host, const Process& process) const;
  void heal_all();

  // ---- worker_faults.cpp
  std::shared_ptr<Process> worker_of(const Fault& fault) const;
  void strike(const Fault& fault, Process& process);
  void lose_gpu(Process& process);
  void freeze(Process& process, Duration time);

  // ---- host_faults.cpp
  std::shared_ptr<Agent> agent_of(const Fault& fault) const;
  HostId host_of(const Agent& agent) const;
  void strike_host(const Fault& fault);
  void give_notice(HostId host);
  void touch_all(const Agent& agent);
  void reset(Agent& agent, Duration time);
  void reset_all(Duration time);
  void join(const Fault& fault);
  void joined_host_is_gone(HostId host);
  void spoil_link(const Fault& fault);
  void stop_controller(Duration time);

  // ---- people.cpp
  void person(const Fault& fault);
  void edit_hosts(int left);
  void shrink_and_cut(int how, Duration time);

  void told(const std::string& what) {
    if (tell_) tell_(queue_.now(), what);
  }
  std::optional<WorkerId> untouched_holder() const;
  std::vector<Model> finished_models() const;
  std::size_t processes_left() const;

  Scene scene_;
  Tell tell_;
  Queue queue_;
  Rng rng_;
  Plane plane_;
  Invariants invariants_;
  Stepping stepping_;
  Stage stage_;
  std::unique_ptr<job::Job> job_;
  std::map<HostId, std::vector<std::shared_ptr<Agent>>> agents_;  // by host, the newest last
  std::vector<job::SlotId> all_slots_;     // slots of the hosts that the job was given
  std::vector<job::SlotId> file_slots_;    // the slots of these that the host file names
  std::vector<job::SlotId> joined_slots_;  // slots of hosts that joined by themselves
  std::set<HostId> given_back_;
  std::optional<std::int64_t> sealing_;  // the save that is being made whole, and not given up
  std::uint64_t agents_joined_ = 0;
  std::set<WorkerId> tainted_;         // workers hit by any fault, or at the end of a bad link
  std::map<HostId, Time> accused_at_;  // when a worker last complained about a worker on that host
  std::set<WorkerId> touched_;  // workers ordered to stop, or hit by a fault that may silence them
  Time armed_ = never;
  Time last_tick_{};
  int idle_ticks_ = 0;  // ticks in a row between which no time passed
  bool controller_alive_ = true;
  bool stands_still_ = false;
  std::vector<job::JobEvent> missed_;  // events that came while stands_still_
  bool interrupted_ = false;
  bool somebody_exited_ = false;  // with 0, by itself
  Time begin_{};
  Outcome outcome_;
  std::optional<Time> over_at_;
};

}  // namespace elasticrun::simulate::faults
