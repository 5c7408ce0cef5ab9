// Rank assignment: a world's order is a row of seats.
//
// The host file's order seats the first world. A worker that is lost leaves its seat empty, the
// others keep their order, and a replacement takes the lowest empty seat; without an empty one it
// is appended. A worker that goes by decision takes its seat along. Ranks are the occupied seats,
// counted.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::rendezvous {

class Seats {
 public:
  // Occupied seats in rank order.
  std::vector<WorkerId> order() const {
    std::vector<WorkerId> workers;
    for (const auto& seat : seats_)
      if (seat) workers.push_back(*seat);
    return workers;
  }
  bool contains(WorkerId worker) const { return workers_.contains(worker); }
  std::size_t size() const { return workers_.size(); }
  void add(WorkerId worker) {
    workers_.insert(worker);
    const auto empty = std::ranges::find(seats_, Seat());
    if (empty != seats_.end())
      *empty = worker;
    else
      seats_.push_back(worker);
  }
  // Lost: the seat waits for a replacement.
  void vacate(WorkerId worker) {
    if (workers_.erase(worker) > 0) std::ranges::replace(seats_, Seat(worker), Seat());
  }
  // Gone by decision; empty seats go with it, for the world is meant to be smaller now.
  void remove(WorkerId worker) {
    workers_.erase(worker);
    std::erase(seats_, Seat(worker));
    std::erase(seats_, Seat());
  }

 private:
  using Seat = std::optional<WorkerId>;
  std::vector<Seat> seats_;
  std::set<WorkerId> workers_;  // in them
};

}  // namespace elasticrun::rendezvous
