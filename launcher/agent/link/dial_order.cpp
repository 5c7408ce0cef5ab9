// See dial_order.hpp.
#include "launcher/agent/link/dial_order.hpp"

#include <algorithm>
#include <utility>

namespace elasticrun::launcher::agent::link {

std::vector<DialAction> DialOrder::step(const DialEvent& event, Time now) {
  std::visit([&](const auto& e) { on(e, now); }, event);
  std::vector<DialAction> actions;
  if (next_ < addresses_ && now >= next_at_) {
    under_way_.insert(next_);
    actions.emplace_back(DialAddress{next_++});
    next_at_ = now + dial_stagger;
  } else if (next_ == addresses_ && under_way_.empty()) {
    if (std::exchange(stream_, false)) {
      under_way_.insert(addresses_);
      actions.emplace_back(DialThroughSsh{});
    } else {
      actions.emplace_back(GiveUpDialling{});
    }
  }
  return actions;
}

void DialOrder::on(const DialConnected& event, Time now) {
  if (!under_way_.contains(event.route)) return;
  connected_.insert(event.route);
  next_at_ = std::max(next_at_, now + greeting_patience);
}

void DialOrder::on(const DialFailed& event, Time now) {
  under_way_.erase(event.route);
  connected_.erase(event.route);
  if (connected_.empty()) next_at_ = std::min(next_at_, now);
}

}  // namespace elasticrun::launcher::agent::link
