// When each of many hosts or workers was last heard, such that the longest silence is known without
// looking at all of them: they stand in a row, and one that is heard moves to the end.
#pragma once

#include <list>
#include <utility>

#include "base/id_map.hpp"
#include "base/time.hpp"

namespace elasticrun::rendezvous {

template <class Who>
class LastHeard {
 public:
  LastHeard() = default;
  // In a copy, places_ would point into the row of the original.
  LastHeard(const LastHeard&) = delete;
  LastHeard& operator=(const LastHeard&) = delete;
  LastHeard(LastHeard&&) = default;
  LastHeard& operator=(LastHeard&&) = default;

  // `now` must not be earlier than in any call before.
  void heard(Who who, Time now) {
    const auto [place, fresh] = places_.try_emplace(who);
    if (fresh)
      place->second = row_.insert(row_.end(), {now, who});
    else
      row_.splice(row_.end(), row_, place->second);
    row_.back().first = now;
  }
  void forget(Who who) {
    const auto place = places_.find(who);
    if (place == places_.end()) return;
    row_.erase(place->second);
    places_.erase(place);
  }
  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  // oldest: when the one that has been silent for longest was last heard. newest: when any was last
  // heard. For these and silent_longest, the row must not be empty.
  Time oldest() const { return row_.front().first; }
  Time newest() const { return row_.back().first; }
  Who silent_longest() const { return row_.front().second; }

  // Replaces each time by `later` of it. `later` must keep the order of times.
  template <class Later>
  void change(Later later) {
    for (auto& [time, who] : row_) time = later(time);
  }

 private:
  using Row = std::list<std::pair<Time, Who>>;
  Row row_;
  IdMap<Who, typename Row::iterator> places_;
};

}  // namespace elasticrun::rendezvous
