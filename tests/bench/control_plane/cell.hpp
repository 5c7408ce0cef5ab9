// One job of one size, from its start to its end, phase by phase.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/control_plane/account.hpp"
#include "tests/bench/control_plane/controller.hpp"
#include "tests/bench/control_plane/line.hpp"
#include "tests/bench/control_plane/training.hpp"

namespace elasticrun::bench {

struct CellOptions {
  int workers = 64;
  Duration steady{};  // the length of the phase in which nothing happens
  Duration limit{};   // of processor time in one phase
};

struct PhaseResult {
  std::string name;
  Cost cost;
  Duration took{};    // on the virtual clock
  std::string cut;    // why the phase was cut short; empty if it was not
  bool sound = true;  // false if it was cut by something other than the limit of time
};

// In the order in which the phases run.
const std::vector<std::string>& phase_names();

class Cell {
 public:
  static constexpr int least_workers = 9;  // two hosts, one of which can go
  explicit Cell(const CellOptions& options);
  // Calls back before and after each phase. After a phase that was cut short the job does not have
  // the size that the next one starts from, so only the end follows. Cutting the steady phase does
  // no harm.
  void run(const std::function<void(const std::string& name)>& begins,
           const std::function<void(const PhaseResult&)>& ended);
  // The controller's summary when the job has ended: its steps, and the sizes it has had.
  const std::string& last_words() const { return controller_.last_words(); }

 private:
  using Condition = std::function<bool()>;
  // Starts the phase and runs the simulation until the phase is complete.
  PhaseResult phase(const std::string& name);
  void until(const Condition& reached);
  void let_pass(Duration time);
  bool whole(std::size_t workers) const;

  void start_agent(HostId host);
  void kill_agent(HostId host);
  std::vector<launcher::hosts::Host> hosts(std::size_t count) const;
  std::size_t slots_of(std::size_t hosts) const;
  // Both return how many workers have died.
  std::size_t lose_worker();
  std::size_t lose_host();

  CellOptions options_;
  std::size_t hosts_count_, fewer_hosts_;
  simulate::Queue queue_;
  Account account_;
  std::map<WorkerId, std::shared_ptr<StubWorker>> workers_;
  Training training_;
  Cluster cluster_;
  Controller controller_;
  std::map<HostId, std::shared_ptr<Line>> agents_;
};

}  // namespace elasticrun::bench
