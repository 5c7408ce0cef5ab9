// The side that is dialled: accepts connections, and hands over only sessions whose greeting was
// accepted.
//
// A connection that has not greeted yet is pending. It has a deadline and may send only one small
// frame. At most pending_max connections are pending; further ones wait in the kernel's queue,
// so a burst of a thousand agents is served in turn. Port scans, garbage and half-open connections
// end here and are reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/dial.hpp"
#include "net/session.hpp"
#include "wire/greeting.hpp"

namespace elasticrun::net {

struct Peer {
  std::string name;       // "10.0.0.2:4711", or "pid 4711" on a Unix socket
  std::int32_t pid = -1;  // Unix sockets only
  std::string identity;   // TLS only: names the key that the peer has shown
};

struct ListenerOptions {
  std::vector<std::string> roles;  // accepted ones of "agent", "watchdog", "worker"
  std::string job;                 // the only accepted job id
  wire::Welcome welcome;  // our protocol, version and term; the rest is filled in here and by admit
  Duration greeting_time = greeting_time_default;  // a pending connection's deadline
  // The deadline when pending_max connections are pending and another connection waits.
  Duration full_time = std::chrono::seconds(1);
  std::size_t pending_max = 256;
};

struct ListenerHandlers {
  // Decides whether the peer is accepted; its proof of the key, protocol, role and job were checked
  // before. Returns an error text for the user if it is refused. Otherwise it may complete the
  // welcome, with the host's number if the peer is an agent.
  std::function<Result<void>(const wire::Hello&, const Peer&, wire::Welcome&)> admit;
  // Called directly after admit; hello.host is the welcome's. The session is on hold until start.
  std::function<void(std::unique_ptr<Session>, const wire::Hello&, const Peer&)> accepted;
  // A pending connection that did not become a session, and why.
  std::function<void(const Peer&, const std::string& why)> refused;
};

class Listener {
 public:
  // `fd` is a listening, non-blocking socket. Use listen_unix or listen_tls (tls.hpp) instead.
  Listener(boost::asio::io_context& io, int fd, std::string unlink_path,
           std::function<std::unique_ptr<Stream>(int fd)> make_stream, ListenerOptions options,
           ListenerHandlers handlers);
  ~Listener();  // stops listening, drops pending connections, removes the Unix socket; accepted
                // sessions stay
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const;  // 0 on a Unix socket

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The path must not exist. The socket gets mode 0600, and only processes of our user are accepted.
Result<std::unique_ptr<Listener>> listen_unix(boost::asio::io_context& io, const std::string& path,
                                              ListenerOptions options, ListenerHandlers handlers);

}  // namespace elasticrun::net
