// Carries the control stream over this process's standard input and output, which are a channel of
// ssh, when no address of the controller can be dialled.
//
// A pair of sockets and not a stream class of its own over two descriptors: whatever is written for
// a connected socket (TLS, the session above it) then works as it is. Each direction holds one
// buffer and reads no more before that is written, so nothing piles up here.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::link {

class Relay {
 public:
  // Writes `first` to standard output, and then what comes of the socket, in blocks
  // (stream_blocks.hpp); what comes on standard input goes to the socket as it is. An end is passed
  // on, either way.
  Relay(boost::asio::io_context& io, net::Fd socket, std::string first);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Two connected sockets, non-blocking, with small buffers: what lies in them makes heartbeats late.
struct SocketPair {
  net::Fd ours;
  net::Fd theirs;
};
Result<SocketPair> socket_pair();

}  // namespace elasticrun::launcher::agent::link
