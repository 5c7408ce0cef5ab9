// The one exchange that forms a group: everybody publishes a value, everybody gets all of them.
//
// A general key-value store with waits would serve too, at one round trip a key; a world of n needs
// n values once, so the store is a row by rank that is complete or not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace elasticrun::rendezvous {

class Exchange {
 public:
  explicit Exchange(std::size_t size = 0) : values_(size), known_(size, false) {}

  // A second value of the same rank is ignored. True when this one made the row complete.
  bool publish(Rank rank, std::string value) {
    const auto i = static_cast<std::size_t>(rank.value);
    if (i >= known_.size() || known_[i]) return false;
    values_[i] = std::move(value);
    known_[i] = true;
    return ++count_ == known_.size();
  }
  bool has(Rank rank) const { return known_[static_cast<std::size_t>(rank.value)]; }
  const std::vector<std::string>& values() const { return values_; }

 private:
  std::vector<std::string> values_;
  std::vector<bool> known_;
  std::size_t count_ = 0;
};

}  // namespace elasticrun::rendezvous
