// The whole job of one seed: the real supervisor, simulated hosts, and everything that goes wrong.
//
// The one loop of the simulation: an event happens, the cores decide, what they decide happens a
// random moment later. Only the seed decides; the same seed is the same run on every machine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/supervisor.hpp"
#include "simulate/host.hpp"
#include "simulate/scene.hpp"

namespace elasticrun::simulate {

struct Outcome {
  std::uint64_t events = 0;
  int faults = 0;
  int worlds = 0;
  int exit_code = 0;
  std::string last_words;
  std::string broken_rule;  // an invariant's; empty: none
  std::string broken_text;
};

class Cluster {
 public:
  // `tell` gets a line for each fault and each thing the controller records; may be null.
  using Tell = std::function<void(Time, const std::string&)>;
  Cluster(const Scene& scene, Tell tell);
  Outcome run();

 private:
  void feed(const job::SupervisorEvent& event);
  void arm();
  void act(const job::StartAgent& action);
  void act(const job::KillAgent& action);
  void act(const job::Order& action);
  void act(const job::Deliver& action);
  void act(const job::Record& action);
  void act(const job::Say& action);
  void act(const job::Ranked&) {}
  void act(const job::Ask&) {}
  void act(const job::Finish& action);
  void set_slots(const std::vector<job::SlotId>& slots);
  void watch_for_the_end();

  // faults.cpp
  void plan_next_fault();
  void one_fault();
  void person();
  void shrink_and_cut();
  void kill_one();
  void lose_gpu();
  void reset_connections();
  void stop_controller(Duration time);
  void spoil_a_link();
  void heal_all();
  std::shared_ptr<Agent> some_agent();
  std::shared_ptr<Process> some_process();
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
  Stage stage_;
  std::unique_ptr<job::Supervisor> supervisor_;
  std::map<HostId, std::vector<std::shared_ptr<Agent>>> agents_;  // of a host, the newest last
  std::vector<job::SlotId> all_slots_;
  std::set<WorkerId> touched_;  // by a fault that makes it silent, or told to stop
  Time armed_ = never;
  Time last_tick_{};
  int idle_ticks_ = 0;  // in a row, in which no time went by
  bool controller_alive_ = true;
  bool stands_still_ = false;
  std::vector<job::SupervisorEvent> missed_;  // meanwhile
  bool interrupted_ = false;
  bool somebody_left_ = false;
  Time begin_{};
  Outcome outcome_;
  std::optional<Time> over_at_;
};

}  // namespace elasticrun::simulate
