// Decides in which order an agent tries the ways to its controller.
//
// A controller has several addresses, and it is not known which of them this host can reach: one
// may be refused at once, another swallowed by a firewall, and a third (a container bridge, say)
// may belong to this very host. So each is tried shortly after the one before, without waiting for
// that one to fail, as in "Happy Eyeballs" (RFC 8305), and the first that greets is taken. An
// address that accepts the connection gets more time before the next one is tried: a controller
// with a thousand hosts connecting is slow to greet. The way through ssh, if there is one, is the
// last resort.
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

// Ways are numbered like the addresses; the way through ssh comes after them.
struct DialTick {};
struct DialConnected {  // the connection was accepted; no greeting yet
  std::size_t route = 0;
};
struct DialFailed {
  std::size_t route = 0;
};
using DialEvent = std::variant<DialTick, DialConnected, DialFailed>;

struct DialAddress {
  std::size_t route = 0;
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
  // A machine has accepted a connection, and no program has answered there yet.
  bool awaits_greeting() const { return !connected_.empty(); }

 private:
  void on(const DialTick&, Time) {}
  void on(const DialConnected& event, Time now);
  void on(const DialFailed& event, Time now);

  const std::size_t addresses_;
  bool stream_;           // the way through ssh exists and was not tried yet
  std::size_t next_ = 0;  // next address to try
  Time next_at_ = Time::min();
  std::set<std::size_t> under_way_;
  std::set<std::size_t> connected_;  // those under way that were accepted
};

}  // namespace elasticrun::launcher::agent::link
