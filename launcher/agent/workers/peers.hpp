// Knows which processes are at the other end of connections to the workers' socket.
//
// The socket gives the pid of the process that has connected (SO_PEERCRED of unix(7)). Before the
// peer has greeted, that pid may already have been given to another process. So a pidfd is kept
// with it: while the pidfd's process lives, the pid belongs to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

class Peers {
 public:
  // To be called when a connection was accepted.
  void came(int socket);
  // To be called when the peer has greeted, or never will.
  void done(pid_t peer) { known_.erase(peer); }
  // Whether the peer is still there and was started by process `above`, directly or indirectly:
  // programs are wrapped in shells and started by other programs.
  bool is_below(pid_t peer, pid_t above);

 private:
  struct Peer {
    net::Fd process = net::Fd();           // pidfd; -1: this kernel has none
    std::optional<std::uint64_t> started;  // as in ProcessStat; used if there is no pidfd
  };
  static bool is_there(const Peer& peer, pid_t pid);

  std::map<pid_t, Peer> known_;
};

}  // namespace elasticrun::launcher::agent::workers
