// Connects the ranks of one world with each other: one listening socket per rank, one connection
// per pair of ranks, each of which begins with a greeting that only members can give
// (peer_greeting.hpp).
//
// Gloo would listen on one port per peer and take the first connection to it for that peer: a port
// scanner took a rank's place, and sixty ranks on a host used up its ports. So Gloo receives
// connections that are made and identified.
//
// One thread and poll(2) are enough: this runs in the background of a training program, for some
// milliseconds, and must end at once on abort().
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
  // Listens on `address`, a numeric IP address of this machine. Throws GroupBroken.
  PeerConnector(const GroupSpec& spec, const std::string& address);
  ~PeerConnector();
  PeerConnector(const PeerConnector&) = delete;
  PeerConnector& operator=(const PeerConnector&) = delete;

  // The address and port (in hexadecimal) that the others dial, as "10.0.0.2/8f3a".
  std::string published() const;

  // Takes what each rank has published, and blocks until each neighbour is connected, at most for
  // the spec's limit. Returns the connected, non-blocking sockets by rank, empty for other ranks.
  // Throws GroupBroken, with the peers that failed. Called once.
  std::vector<net::Fd> connect(const std::vector<std::string>& published);

  // Ends connect() at once. Any thread, any time.
  void abort() noexcept;
  // The ranks that are not connected yet. Any thread.
  std::vector<int> missing() const;
  // Number of connections from others than members, which were turned away. Any thread.
  int rejected() const { return rejected_; }

 private:
  using Clock = std::chrono::steady_clock;
  // A connection that was accepted and has not given its greeting yet.
  struct Pending {
    net::Fd socket;
    std::string bytes;
    Clock::time_point since;
  };
  // A connection that this rank makes to a lower rank.
  struct Dial {
    int rank = 0;
    net::Fd socket;
    std::string place;
    bool greeted = false;
    std::string bytes;  // what has been received of the answer
  };

  void dial(int rank, const std::string& published);
  void wait(Clock::time_point until);
  void accept_guests();
  void turn_away_slow_guests();
  // Go on with a connection that is ready. When it is finished (connected, failed or turned away)
  // its socket is moved out.
  void advance(Dial& dial);
  void advance(Pending& pending);
  void turn_away(Pending& pending);
  void connected(int rank, net::Fd socket);
  // Records an error with a peer, or of this machine: connect() gives up soon.
  void failed(int rank, bool hung_up, std::string why);
  void cannot_dial(int rank, int error, std::string why);
  [[noreturn]] void give_up() const;
  void out_of_time();

  const GroupSpec spec_;
  const std::string address_;
  const PeerGreeting greeting_;
  net::Fd listener_;
  net::Fd wake_;  // readable after abort()
  std::uint16_t port_ = 0;
  std::vector<std::string> places_;  // what each rank has published, for error texts
  std::vector<Dial> dials_;
  std::vector<Pending> pending_;
  std::vector<net::Fd> peers_;
  std::vector<PeerTrouble> troubles_;
  bool unreachable_ = false;  // an error may have the same cause as others that will follow
  mutable std::mutex mutex_;
  std::set<int> missing_;
  std::atomic<int> rejected_{0};
};

}  // namespace elasticrun::worker::collective
