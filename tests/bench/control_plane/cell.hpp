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
  Duration steady{};  // how long nothing happens
  Duration limit{};   // of processor time for one phase
};

struct PhaseResult {
  std::string name;
  Cost cost;
  Duration took{};    // on the virtual clock
  std::string cut;    // why it did not come to its end; empty: it did
  bool sound = true;  // nothing but the time was short
};

// In the order in which they are run.
const std::vector<std::string>& phase_names();

class Cell {
 public:
  static constexpr int least_workers = 9;  // two hosts, one of which can go
  explicit Cell(const CellOptions& options);
  // Calls back before and after each phase. After one that is cut the job has not the size
  // that the next one begins with, so only its end follows; the steady one is as good as whole.
  void run(const std::function<void(const std::string& name)>& begins,
           const std::function<void(const PhaseResult&)>& ended);
  // Of the controller, when the job has ended: its steps, and the sizes it has had.
  const std::string& last_words() const { return controller_.last_words(); }

 private:
  using Condition = std::function<bool()>;
  // Begins something, and lets time go by until it has come to its end.
  PhaseResult phase(const std::string& name);
  void until(const Condition& reached);
  void let_pass(Duration time);
  bool whole(std::size_t workers) const;

  void start_agent(HostId host);
  void kill_agent(HostId host);
  std::vector<launcher::hosts::Host> hosts(std::size_t count) const;
  std::size_t slots_of(std::size_t hosts) const;
  // How many workers have died.
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
