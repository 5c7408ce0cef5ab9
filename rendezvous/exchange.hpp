// The one exchange that forms a group: each rank publishes a value and gets the values it needs.
//
// A general key-value store with blocking reads would do, at one round trip per key. Here each rank
// says along with its own value whose values it needs, and gets one answer when the last of them is
// there. In a large world each rank needs only a few values: the work grows with the number of
// values needed and not with n^2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace elasticrun::rendezvous {

// An answer: the values that these ranks need, complete.
struct Gathering {
  std::vector<Rank> to;             // the ranks that get it
  std::vector<std::int32_t> ranks;  // publishers of the values, ascending; empty: all, in order
  std::vector<std::string> values;
};

// An error where the answer is too large for one frame: a large world in which each rank needs the
// values of all.
Result<void> fits_a_frame(const Gathering& gathered);

class Exchange {
 public:
  explicit Exchange(std::size_t size = 0) : places_(size) {}

  // Takes the value of `rank` and returns the answers that are complete now. `needs`: the ranks
  // whose values this rank must have. Numbers that are no rank are dropped; if none is left, the
  // rank needs all values. A second value of the same rank is ignored. The ranks that need all
  // values get them together when every rank has published.
  std::vector<Gathering> publish(Rank rank, std::string value, std::vector<std::int32_t> needs);
  bool has(Rank rank) const { return places_[static_cast<std::size_t>(rank.value)].known; }
  bool complete() const { return count_ == places_.size(); }

 private:
  struct Place {
    bool known = false;  // the value was published
    std::string value;
    std::vector<std::int32_t> needs;  // ascending; empty: all
    std::size_t missing = 0;          // number of `needs` that are not known yet
    std::vector<Rank> waiting;        // ranks that need this value and wait for it
  };
  Gathering gather(Rank rank) const;
  Gathering gather_all() const;

  std::vector<Place> places_;
  std::size_t count_ = 0;
};

}  // namespace elasticrun::rendezvous
