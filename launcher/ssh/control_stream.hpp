// The control stream of a host that cannot dial the controller: moves bytes between the command
// that runs there and a connection to our own rendezvous, which therefore need not know about ssh.
// The bytes are TLS, end to end; ssh is only the wire.
//
// One loop moves what can be moved and then waits for all directions at once, rather than one
// coroutine for each direction: libssh has one state for both, and sends while it is asked to read.
// Each direction has one small buffer and takes no more before that is empty, so back-pressure
// falls on the kernel and in the end on the program that prints.
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
  // `socket` is non-blocking and still connecting. `came`: what the command has sent already.
  ControlStream(boost::asio::io_context& io, SshSession& session, net::Fd socket, std::string came);
  ~ControlStream();
  ControlStream(const ControlStream&) = delete;
  ControlStream& operator=(const ControlStream&) = delete;

  // As SshSession::read: returns when the command has written to its standard error (appended to
  // `err`) or has ended, or when wake() was called.
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
  std::string raw_;            // what the command has sent, still in blocks
  std::string incoming_;       // payload for the socket
  std::string outgoing_;       // bytes for the command
  bool writable_ = true;       // false: the last send to the socket would have blocked
  bool socket_ended_ = false;  // the socket will send no more
  bool socket_broken_ = false;
  bool told_end_ = false;  // the command will send no more, and the socket was shut down
};

}  // namespace elasticrun::launcher::ssh
