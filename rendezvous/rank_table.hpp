// Rank assignment: a world's order is a row of positions.
//
// The host file's order fills the row of the first world. A worker that is lost leaves its position
// vacant, the others keep theirs, and a replacement takes the lowest vacant position; without a
// vacant one it is appended. The position of a worker that leaves by decision is removed. Ranks
// count the occupied positions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"

namespace elasticrun::rendezvous {

class RankTable {
 public:
  // The workers in rank order.
  std::vector<WorkerId> order() const {
    std::vector<WorkerId> workers;
    workers.reserve(row_.size());
    for (const auto& [position, worker] : row_) workers.push_back(worker);
    return workers;
  }
  // The worker with the first rank. The table must not be empty.
  WorkerId first() const { return row_.begin()->second; }
  bool contains(WorkerId worker) const { return position_of_.contains(worker); }
  std::size_t size() const { return position_of_.size(); }
  bool empty() const { return position_of_.empty(); }
  void add(WorkerId worker) {
    const Position position = vacant_.empty() ? end_++ : *vacant_.begin();
    vacant_.erase(position);
    row_[position] = worker;
    position_of_[worker] = position;
  }
  // For a lost worker: its position waits for a replacement.
  void vacate(WorkerId worker) {
    if (const auto position = take(worker)) vacant_.insert(*position);
  }
  // For a worker that leaves by decision. All vacant positions are removed with it, since the world
  // is meant to be smaller now.
  void remove(WorkerId worker) {
    take(worker);
    vacant_.clear();
  }

 private:
  // Only the order of positions matters: a removed one leaves a gap in the numbers.
  using Position = std::int64_t;
  std::optional<Position> take(WorkerId worker) {
    const auto found = position_of_.find(worker);
    if (found == position_of_.end()) return std::nullopt;
    const Position position = found->second;
    position_of_.erase(found);
    row_.erase(position);
    return position;
  }

  std::map<Position, WorkerId> row_;
  IdMap<WorkerId, Position> position_of_;
  std::set<Position> vacant_;
  Position end_ = 0;
};

}  // namespace elasticrun::rendezvous
