// Which processes are at the other end of connections on the workers' socket.
//
// The socket tells the number of the process that has connected (SO_PEERCRED of unix(7)). Until the
// peer has greeted that number may have been given to another process, so a descriptor of the
// process itself is kept with it: while that lives, the number is its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

class Peers {
 public:
  // A connection was accepted.
  void came(int socket);
  // It has greeted, or never will.
  void done(pid_t peer) { known_.erase(peer); }
  // Whether the peer is still there and was started by that process, however indirectly: programs
  // are wrapped in shells and started by other programs.
  bool is_below(pid_t peer, pid_t above);

 private:
  struct Peer {
    net::Fd process = net::Fd();           // of -1: this kernel has none
    std::optional<std::uint64_t> started;  // as in ProcessStat; then this must do
  };
  static bool is_there(const Peer& peer, pid_t pid);

  std::map<pid_t, Peer> known_;
};

}  // namespace elasticrun::launcher::agent::workers
