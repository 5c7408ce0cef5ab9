// The paths between hosts by which workers reach each other, and what they lose. Each direction is
// one of its own; the control connections go another way (host.hpp).
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "base/ids.hpp"

namespace elasticrun::simulate::faults {

class Links {
 public:
  // Large: small packets pass, as where the path has a smaller limit than its ends believe.
  enum class Loss { large, all };

  void spoil(HostId from, HostId to, Loss loss) { losses_[{from, to}] = loss; }
  void heal(HostId a, HostId b) {
    losses_.erase({a, b});
    losses_.erase({b, a});
  }
  void heal() { losses_.clear(); }

  bool all_well() const { return losses_.empty(); }
  bool touches(HostId host) const {
    return std::ranges::any_of(losses_, [host](const auto& entry) {
      return entry.first.first == host || entry.first.second == host;
    });
  }
  // A greeting, or another message of one packet, and the answer to it.
  bool greets(HostId a, HostId b) const { return small(a, b) && small(b, a); }
  // Many bytes: they arrive, and so does the word that they did.
  bool carries(HostId from, HostId to) const {
    return !losses_.contains({from, to}) && small(to, from);
  }

 private:
  bool small(HostId from, HostId to) const {
    const auto loss = losses_.find({from, to});
    return loss == losses_.end() || loss->second == Loss::large;
  }

  std::map<std::pair<HostId, HostId>, Loss> losses_;
};

}  // namespace elasticrun::simulate::faults
