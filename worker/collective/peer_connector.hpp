// Connects the ranks of one world with each other: one listening socket a rank, one connection a
// pair, each of which begins with a greeting that only members can give (peer_greeting.hpp).
//
// Gloo would listen on one port per peer and take whoever connects first for that peer: a port
// scanner took a rank's place, and sixty ranks on a host used up its ports. So Gloo is handed
// connections that stand and are known.
//
// One thread and poll(2): this runs in the background of a training program, for some milliseconds,
// and must end at once when it is told to.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "net/sockets.hpp"
#include "worker/collective/group.hpp"
#include "worker/collective/peer_greeting.hpp"

namespace elasticrun::worker::collective {

class PeerConnector {
 public:
  // Listens on `address`, a numeric one of this machine. Throws GroupBroken.
  PeerConnector(const GroupSpec& spec, const std::string& address);
  ~PeerConnector();
  PeerConnector(const PeerConnector&) = delete;
  PeerConnector& operator=(const PeerConnector&) = delete;

  // "10.0.0.2/8f3a": where the others dial, as printable text.
  std::string published() const;

  // Takes what each rank has published, and blocks until each neighbour is connected, at most for
  // the spec's limit. The connected sockets by rank, non-blocking; none at the other ranks. Throws
  // GroupBroken, with the peers that are missing. Once.
  std::vector<net::Fd> connect(const std::vector<std::string>& published);

  // Ends connect() at once. Any thread, any time.
  void abort() noexcept;
  // The ranks that are not connected yet. Any thread.
  std::vector<int> missing() const;
  // Connections of others than members that were turned away. Any thread.
  int strangers() const { return strangers_; }

 private:
  using Clock = std::chrono::steady_clock;
  // A connection of somebody who has dialled us and has not greeted yet.
  struct Guest {
    net::Fd socket;
    std::string bytes;
    Clock::time_point since;
  };
  // Towards a lower rank.
  struct Dial {
    int rank = 0;
    net::Fd socket;
    std::string place;
    bool greeted = false;
    std::string bytes;  // of the answer
  };

  void dial(int rank, const std::string& published);
  void wait(Clock::time_point until);
  void accept_guests();
  void turn_away_slow_guests();
  // With one that is over, connected or turned away, the socket goes.
  void advance(Dial& dial);
  void advance(Guest& guest);
  void turn_away(Guest& guest);
  void connected(int rank, net::Fd socket);
  // Of one that is over, or of our own: connect() ends soon.
  void failed(int rank, bool hung_up, std::string why);
  void cannot_dial(int rank, int error, std::string why);
  [[noreturn]] void give_up() const;
  void out_of_time();

  const GroupSpec spec_;
  const std::string address_;
  const PeerGreeting greeting_;
  net::Fd listener_;
  net::Fd wake_;  // readable when it was aborted
  std::uint16_t port_ = 0;
  std::vector<std::string> places_;  // of the ranks, for a person
  std::vector<Dial> dials_;
  std::vector<Guest> guests_;
  std::vector<net::Fd> peers_;
  std::vector<PeerTrouble> troubles_;
  bool unreachable_ = false;  // one of them may have the same cause as others that follow
  mutable std::mutex mutex_;
  std::set<int> missing_;
  std::atomic<int> strangers_{0};
};

}  // namespace elasticrun::worker::collective
