// Virtual time: a queue of future events in order of time. Events at the same time run in the order
// in which they were added, so a seed gives the same run everywhere.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace elasticrun::simulate {

class Queue {
 public:
  explicit Queue(Time begin = Time{} + std::chrono::seconds(1)) : now_(begin) {}

  Time now() const { return now_; }
  Time next_at() const { return entries_.empty() ? never : entries_.top().when; }
  void at(Time when, std::function<void()> what) {
    entries_.push({std::max(when, now_), ++count_, std::move(what)});
  }
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // Runs the next event; returns false when there is none.
  bool run_next() {
    if (entries_.empty()) return false;
    // top() is const only to protect the order, which moving `what` out does not touch.
    Entry entry = std::move(const_cast<Entry&>(entries_.top()));
    entries_.pop();
    now_ = entry.when;
    entry.what();
    return true;
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t order = 0;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return std::pair(other.when, other.order) < std::pair(when, order);
    }
  };
  std::priority_queue<Entry> entries_;
  Time now_;
  std::uint64_t count_ = 0;
};

}  // namespace elasticrun::simulate
