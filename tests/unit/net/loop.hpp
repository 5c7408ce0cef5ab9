// Shared helpers of the net tests: a loop that runs until a condition holds, raw access to the
// peer's end of a socket, and a log of what a session delivers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/session.hpp"
#include "net/sockets.hpp"
#include "net/tls.hpp"

namespace elasticrun::net {

// Runs handlers until `done` holds; false when it does not within the limit.
bool run_until(boost::asio::io_context& io, const std::function<bool()>& done,
               Duration limit = std::chrono::seconds(20));

// Two connected Unix stream sockets, non-blocking.
std::pair<Fd, Fd> socket_pair();
// Writes all bytes while running the loop.
bool raw_write(boost::asio::io_context& io, int fd, std::string_view bytes);
// Returns what can be read now; also empty at the end of the stream.
std::string raw_read(int fd);
// True when the peer has closed or reset the connection; discards pending bytes.
bool raw_closed(int fd);

// The frames and the end of one session.
struct Log {
  std::vector<std::pair<std::uint32_t, std::string>> frames;
  std::vector<std::string> ends;

  Handlers handlers();
};

wire::Hello hello_of(const std::string& role, const std::string& job);
ListenerOptions options_of(const std::string& role, const std::string& job);
TlsKey key_of(const std::string& identity, unsigned char filling);
// The key lookup of a listener that has only that key.
FindKey only(const TlsKey& key);

// Records a listener's sessions, greetings and refusals.
struct Guestbook {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<wire::Hello> hellos;
  std::vector<Peer> peers;
  std::vector<std::string> refused;
  std::string answer;  // the reason with which `admit` refuses; empty to accept

  ListenerHandlers handlers();
};

// The outcome of a dial.
struct Outcome {
  std::unique_ptr<Session> session;
  wire::Welcome welcome;
  std::string error;
  int calls = 0;

  DialDone handler();
};

}  // namespace elasticrun::net
