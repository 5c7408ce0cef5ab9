// The control stream of a host that cannot dial: bytes between the command that runs there and a
// connection to our own rendezvous, which so need not know of it. TLS is in them, end to end; ssh
// is only the wire.
//
// One loop that moves what can be moved and then waits for all of it at once, and not a coroutine
// for each direction: libssh has one state for both, and sends while it is asked to read. Each
// direction has one small buffer and takes no more before that is empty, so it is the kernel, and
// at last the program that prints, which waits.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "launcher/executors/stream_blocks.hpp"
#include "launcher/ssh/session.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {

class ControlStream {
 public:
  // `socket` is connecting, non-blocking. `came`: what the command has sent already.
  ControlStream(boost::asio::io_context& io, SshSession& session, net::Fd socket, std::string came);
  ~ControlStream();
  ControlStream(const ControlStream&) = delete;
  ControlStream& operator=(const ControlStream&) = delete;

  // As SshSession::read: until the command has said something on its standard error, which is
  // appended, has ended, or wake() was called.
  boost::asio::awaitable<SshSession::More> run(std::string& err);

 private:
  bool move(std::string& err);
  bool to_socket(std::string& err);
  bool to_command();
  boost::asio::awaitable<void> wait();

  struct Waits;
  boost::asio::io_context& io_;
  SshSession& session_;
  const std::shared_ptr<Waits> waits_;
  executors::StreamBlocks blocks_;
  std::string raw_;            // what has come for it, in blocks
  std::string incoming_;       // for the socket
  std::string outgoing_;       // for the command
  bool writable_ = true;       // nothing more is known of the socket
  bool socket_ended_ = false;  // it will send no more
  bool socket_broken_ = false;
  bool told_end_ = false;  // the command will, and the socket knows
};

}  // namespace elasticrun::launcher::ssh
