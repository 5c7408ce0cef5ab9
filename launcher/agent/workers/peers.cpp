// See peers.hpp.
#include "launcher/agent/workers/peers.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "launcher/agent/workers/pidfd.hpp"
#include "launcher/agent/workers/process_stat.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // since Linux 6.5; the value on all machines that agents run on
#endif

namespace elasticrun::launcher::agent::workers {
namespace {

std::optional<std::uint64_t> start_of(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat ? std::optional(stat->started) : std::nullopt;
}

}  // namespace

// Before Linux 6.5 the pidfd is opened by pid, a moment after the process has connected.
void Peers::came(int socket) {
  const pid_t pid = net::peer_credentials(socket).pid;
  Peer& peer = known_[pid];
  if (is_there(peer, pid)) return;
  int process = -1;
  socklen_t size = sizeof process;
  const bool told = ::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &size) == 0;
  if (told)
    peer = {net::Fd(process), start_of(pid)};
  else if (errno == ENOPROTOOPT)
    peer = {open_process(pid), start_of(pid)};
  else
    peer = {};  // it has ended already
}

bool Peers::is_there(const Peer& peer, pid_t pid) {
  if (peer.process.get() >= 0) return lives(peer.process);
  return peer.started && start_of(pid) == peer.started;
}

// A peer that has connected twice is forgotten after its first greeting, and looked up again here.
bool Peers::is_below(pid_t pid, pid_t above) {
  const auto [known, anew] = known_.try_emplace(pid);
  if (anew) known->second = {open_process(pid), start_of(pid)};
  const Peer& peer = known->second;
  return is_there(peer, pid) && workers::is_below(pid, above, process_stat) && is_there(peer, pid);
}

}  // namespace elasticrun::launcher::agent::workers
