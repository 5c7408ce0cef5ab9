// The hosts of a simulated job and the workers on them: who is there, how fast, what it costs.
//
// Which slots get a worker at a size, who is kept and who goes, and which slots are left alone, is
// the job's own rules of staffing; here is what surrounds it in reality: machines that go and come,
// that are slow for a while, and that have a price. Messages, processes and the agreement on a
// world are left out: they cost time, which the caller knows (what_if.hpp).
#pragma once

#include <optional>
#include <vector>

#include "autoscaler/policy.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/workers/staffing.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::simulate::what_if {

// Of all workers that exist: members, spares, and those that still start.
struct Costs {
  int workers = 0;
  double per_hour = 0;
};

class Fleet {
 public:
  // `price` is of a worker and hour, where a host does not say its own.
  Fleet(const std::vector<launcher::hosts::Host>& hosts, double price);

  // What these sizes cost and how many hosts they take: always the first slots, as all are there.
  std::vector<autoscaler::Offer> offers(const std::vector<int>& sizes) const;
  int hosts() const { return static_cast<int>(hosts_.size()); }

  // A host that is not listed gets no workers; those it has stay until a change or its loss.
  void list(int host, bool listed);
  bool listed(int host) const { return hosts_[static_cast<std::size_t>(host)].listed; }
  // Its workers are gone, the members among them, too. How many of those there were.
  int lose(int host);
  bool has_workers(int host) const;
  void set_speed(int host, double speed) { hosts_[static_cast<std::size_t>(host)].speed = speed; }
  double speed(int host) const { return hosts_[static_cast<std::size_t>(host)].speed; }
  double speed(WorkerId worker) const;
  job::SlotId slot(WorkerId worker) const { return workers_.rows().at(worker).slot; }

  // ---- as the job does it: start what is missing, dismiss who is not wanted, propose a world
  // Those that were started, not ready yet.
  std::vector<WorkerId> start(int size, Time now);
  void ready(WorkerId worker, Time now);
  void dismiss(int size, Time now);
  // The members of the world that should follow, when all of them are ready and it is another.
  std::optional<std::vector<WorkerId>> proposal(int size, Time now) const;
  void enter(std::vector<WorkerId> members) { members_ = std::move(members); }
  bool starting() const;

  const std::vector<WorkerId>& members() const { return members_; }
  const Costs& costs() const { return costs_; }
  job::workers::Slots& slots() { return slots_; }
  bool has_substitute(int size, Time now) const {
    return job::workers::has_substitute(slots_, workers_, size, now);
  }

 private:
  struct Machine {
    int slots = 1;
    double price = 0;  // of a slot
    bool listed = true;
    double speed = 1;
  };
  void count();
  void tell_slots();

  std::vector<Machine> hosts_;
  double price_;
  job::workers::Slots slots_;
  job::workers::Workers workers_;
  std::vector<WorkerId> members_;  // in rank order
  Costs costs_;
};

}  // namespace elasticrun::simulate::what_if
