// The network paths between hosts that workers use, and what is lost on them. Each direction is
// a separate path. Control connections are not affected (host.hpp).
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "base/ids.hpp"

namespace elasticrun::simulate::faults {

class Links {
 public:
  // large: only large packets are lost, as where the path has a smaller MTU than its ends assume.
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
  // Whether a greeting, or another message of one packet, gets through, and the answer to it.
  bool greets(HostId a, HostId b) const { return small(a, b) && small(b, a); }
  // Whether a large transfer arrives, and its acknowledgement as well.
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
