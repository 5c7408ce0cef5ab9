// Rank assignment: a world's order is a row of seats.
//
// The host file's order seats the first world. A worker that is lost leaves its seat empty, the
// others keep their order, and a replacement takes the lowest empty seat; without an empty one it
// is appended. A worker that goes by decision takes its seat along. Ranks are the occupied seats,
// counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"

namespace elasticrun::rendezvous {

class Seats {
 public:
  // Occupied seats in rank order.
  std::vector<WorkerId> order() const {
    std::vector<WorkerId> workers;
    workers.reserve(row_.size());
    for (const auto& [seat, worker] : row_) workers.push_back(worker);
    return workers;
  }
  // Where there is one: of the first rank.
  WorkerId first() const { return row_.begin()->second; }
  bool contains(WorkerId worker) const { return seat_of_.contains(worker); }
  std::size_t size() const { return seat_of_.size(); }
  bool empty() const { return seat_of_.empty(); }
  void add(WorkerId worker) {
    const Seat seat = vacant_.empty() ? end_++ : *vacant_.begin();
    vacant_.erase(seat);
    row_[seat] = worker;
    seat_of_[worker] = seat;
  }
  // Lost: the seat waits for a replacement.
  void vacate(WorkerId worker) {
    if (const auto seat = take(worker)) vacant_.insert(*seat);
  }
  // Gone by decision; empty seats go with it, for the world is meant to be smaller now.
  void remove(WorkerId worker) {
    take(worker);
    vacant_.clear();
  }

 private:
  // Only their order counts: one that is gone leaves a gap.
  using Seat = std::int64_t;
  std::optional<Seat> take(WorkerId worker) {
    const auto found = seat_of_.find(worker);
    if (found == seat_of_.end()) return std::nullopt;
    const Seat seat = found->second;
    seat_of_.erase(found);
    row_.erase(seat);
    return seat;
  }

  std::map<Seat, WorkerId> row_;
  IdMap<WorkerId, Seat> seat_of_;
  std::set<Seat> vacant_;
  Seat end_ = 0;
};

}  // namespace elasticrun::rendezvous
