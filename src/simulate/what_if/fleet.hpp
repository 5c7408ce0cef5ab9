// The hosts of a simulated job and the workers on them: which exist, how fast they are, and what
// they cost.
//
// The job's own staffing code decides which slots get a worker at a size, which workers stay or go,
// and which slots are avoided. This class models what surrounds it: machines that go and come, that
// are slow for a while, and that have a price. Messages, processes and the agreement on a world are
// left out: they only cost time, which the caller accounts for (what_if.hpp).
#pragma once

#include <optional>
#include <vector>

#include "autoscaler/policy.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/core/workers/staffing.hpp"
#include "launcher/hosts/hosts.hpp"

namespace elasticrun::simulate::what_if {

// Number and price of all workers that exist: members, spares, and workers that are still starting.
struct Costs {
  int workers = 0;
  double per_hour = 0;
};

class Fleet {
 public:
  // `price` is per worker and hour, for hosts without a price of their own.
  Fleet(const std::vector<launcher::hosts::Host>& hosts, double price);

  // The price and the number of hosts of these sizes, each on the first slots, as if all hosts were
  // there.
  std::vector<autoscaler::Offer> offers(const std::vector<int>& sizes) const;
  int hosts() const { return static_cast<int>(hosts_.size()); }

  // A host that is not listed gets no workers; those it has stay until a change or its loss.
  void list(int host, bool listed);
  bool listed(int host) const { return hosts_[static_cast<std::size_t>(host)].listed; }
  // Removes all workers of the host; returns how many of them were members.
  int lose(int host);
  bool has_workers(int host) const;
  void set_speed(int host, double speed) { hosts_[static_cast<std::size_t>(host)].speed = speed; }
  double speed(int host) const { return hosts_[static_cast<std::size_t>(host)].speed; }
  double speed(WorkerId worker) const;
  job::SlotId slot(WorkerId worker) const { return workers_.rows().at(worker).slot; }

  // ---- as the job does it: start missing workers, dismiss unwanted ones, propose a world
  // Starts the workers missing for `size`; returns them. They are not ready yet.
  std::vector<WorkerId> start(int size, Time now);
  void ready(WorkerId worker, Time now);
  void dismiss(int size, Time now);
  // The members of the next world, if all of them are ready and they differ from the present ones.
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
    double price = 0;  // per slot and hour
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
