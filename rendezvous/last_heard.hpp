// When each of many was last heard, so that the longest silence is known without looking at all.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/time.hpp"

namespace elasticrun::rendezvous {

template <class Who>
class LastHeard {
 public:
  void heard(Who who, Time now) {
    const auto [found, fresh] = times_.try_emplace(who, now);
    if (!fresh) {
      order_.erase({found->second, who});
      found->second = now;
    }
    order_.insert({now, who});
  }
  void forget(Who who) {
    const auto found = times_.find(who);
    if (found == times_.end()) return;
    order_.erase({found->second, who});
    times_.erase(found);
  }
  std::size_t size() const { return times_.size(); }
  bool empty() const { return times_.empty(); }
  // Of whoever has been silent for longest, and of whoever was heard last; only where somebody is.
  Time oldest() const { return order_.begin()->first; }
  Time newest() const { return order_.rbegin()->first; }
  Who silent_longest() const { return order_.begin()->second; }

  // `later` says what each time becomes; none is before another one that it was behind.
  template <class Later>
  void change(Later later) {
    order_.clear();
    for (auto& [who, time] : times_) {
      time = later(time);
      order_.insert({time, who});
    }
  }

 private:
  std::map<Who, Time> times_;
  std::set<std::pair<Time, Who>> order_;
};

}  // namespace elasticrun::rendezvous
