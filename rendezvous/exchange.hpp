// The one exchange that forms a group: everybody publishes a value, and gets those that it needs.
//
// A general key-value store with waits would serve too, at one round trip a key; here each rank
// says with its own value whose it needs, and is answered once, when the last of them is there.
// In a large world that is a few each: the work grows with what is needed and not with n^2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace elasticrun::rendezvous {

// Values for ranks that have all of theirs now.
struct Gathering {
  std::vector<Rank> to;
  std::vector<std::int32_t> ranks;  // whose values these are, ascending; empty: of all, in order
  std::vector<std::string> values;
};

// Where all need the values of all, a world can be too large for that.
Result<void> fits_a_frame(const Gathering& gathered);

class Exchange {
 public:
  explicit Exchange(std::size_t size = 0) : places_(size) {}

  // `needs`: ranks whose values this one must have; what is no rank does not count, and where
  // nothing else is left it needs all. A second value of the same rank is ignored. Whoever needs
  // all gets them together when the row is complete.
  std::vector<Gathering> publish(Rank rank, std::string value, std::vector<std::int32_t> needs);
  bool has(Rank rank) const { return places_[static_cast<std::size_t>(rank.value)].known; }
  bool complete() const { return count_ == places_.size(); }

 private:
  struct Place {
    bool known = false;
    std::string value;
    std::vector<std::int32_t> needs;  // ascending; empty: all
    std::size_t missing = 0;          // of these
    std::vector<Rank> waiting;        // who needs this one's
  };
  Gathering gather(Rank rank) const;
  Gathering gather_all() const;

  std::vector<Place> places_;
  std::size_t count_ = 0;
};

}  // namespace elasticrun::rendezvous
