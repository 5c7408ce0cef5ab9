// When each of many was last heard, so that the longest silence is known without looking at all:
// they stand in a row, and who is heard goes to its end.
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
  // The places of a copy would be in the row of the other.
  LastHeard(const LastHeard&) = delete;
  LastHeard& operator=(const LastHeard&) = delete;
  LastHeard(LastHeard&&) = default;
  LastHeard& operator=(LastHeard&&) = default;

  // Not before anybody was heard last.
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
  // Of whoever has been silent for longest, and of whoever was heard last; only where somebody is.
  Time oldest() const { return row_.front().first; }
  Time newest() const { return row_.back().first; }
  Who silent_longest() const { return row_.front().second; }

  // `later` says what each time becomes; none is before another one that it was behind.
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
