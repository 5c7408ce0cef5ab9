// In which order an agent tries the ways to its controller.
//
// A controller has several addresses, and which of them this host can reach is not known: one may
// be refused at once, another swallowed by a firewall, a third (a bridge of containers, say) belong
// to this very host. So they are tried one shortly after the other and not one after the other has
// failed, as "Happy Eyeballs" does (RFC 8305), and the first that greets is taken. Who has taken
// our call is given more time before the next one is bothered: a controller with a thousand hosts
// at its door is slow to greet. The way through ssh, where there is one, is the last resort.
//
// Pure: the driver is controller_dialer.cpp.
#pragma once

#include <cstddef>
#include <set>
#include <variant>
#include <vector>

#include "base/time.hpp"

namespace elasticrun::launcher::agent::link {

inline constexpr Duration dial_stagger = std::chrono::milliseconds(300);
inline constexpr Duration greeting_patience = std::chrono::seconds(2);

// Ways are numbered as the addresses are; the one through ssh comes after them.
struct DialTick {};
struct DialConnected {  // the call was taken; nothing has been said yet
  std::size_t way = 0;
};
struct DialFailed {
  std::size_t way = 0;
};
using DialEvent = std::variant<DialTick, DialConnected, DialFailed>;

struct DialAddress {
  std::size_t way = 0;
};
struct DialThroughSsh {};
struct GiveUpDialling {};
using DialAction = std::variant<DialAddress, DialThroughSsh, GiveUpDialling>;

class DialOrder {
 public:
  // `stream`: there is a way through ssh.
  DialOrder(std::size_t addresses, bool stream) : addresses_(addresses), stream_(stream) {}

  std::vector<DialAction> step(const DialEvent& event, Time now);
  Time wake_at() const { return next_ < addresses_ ? next_at_ : never; }

 private:
  void on(const DialTick&, Time) {}
  void on(const DialConnected& event, Time now);
  void on(const DialFailed& event, Time now);

  const std::size_t addresses_;
  bool stream_;           // not tried yet
  std::size_t next_ = 0;  // address to be tried
  Time next_at_ = Time::min();
  std::set<std::size_t> under_way_;
  std::set<std::size_t> connected_;  // of those
};

}  // namespace elasticrun::launcher::agent::link
