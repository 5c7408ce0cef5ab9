// Carries the control stream over this process's standard input and output, which are a channel of
// ssh, when no address of the controller can be dialled.
//
// It uses a pair of sockets and not a stream class over two descriptors: code written for a
// connected socket (TLS, the session above it) then works unchanged. Each direction holds one
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
  // Writes `first` to standard output, then whatever arrives from the socket, in blocks
  // (stream_blocks.hpp). What arrives on standard input goes to the socket unchanged. The end of
  // either stream is passed on.
  Relay(boost::asio::io_context& io, net::Fd socket, std::string first);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Two connected sockets, non-blocking, with small buffers: data that waits in them delays
// heartbeats.
struct SocketPair {
  net::Fd ours;
  net::Fd theirs;
};
Result<SocketPair> socket_pair();

}  // namespace elasticrun::launcher::agent::link
