// The side that is dialled: accepts, hands over only sessions that have greeted well.
//
// What has not greeted yet is a guest: it has a deadline, at most guests_max of them are in the
// house (more wait in the kernel's queue, so that a burst of a thousand agents is served in turn),
// and it may not send more than one small frame. Port scans, garbage and half-open connections end
// here and are counted.
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
#include "wire/messages.hpp"

namespace elasticrun::net {

struct Peer {
  std::string name;       // "10.0.0.2:4711", or "pid 4711" on a Unix socket
  std::int32_t pid = -1;  // Unix sockets only
  std::string identity;   // TLS only: names the key that the peer has shown
};

struct ListenerOptions {
  std::vector<std::string> roles;  // that are welcome: "agent", "watchdog", "worker"
  std::string job;                 // the only job
  wire::Welcome welcome;  // our protocol, version and term; the rest is filled in here and by admit
  Duration greeting_time = greeting_time_default;
  // The same when all places are taken and somebody waits for one.
  Duration crowded_time = std::chrono::seconds(1);
  std::size_t guests_max = 256;
};

struct ListenerHandlers {
  // An error: why the peer is refused, for a person. Else the welcome is ours to complete, with the
  // host's number where it is an agent's. Proof of the key, protocol, role and job are right.
  std::function<Result<void>(const wire::Hello&, const Peer&, wire::Welcome&)> admit;
  // Directly after admit; hello.host is the welcome's. Frames come after the session's start.
  std::function<void(std::unique_ptr<Session>, const wire::Hello&, const Peer&)> accepted;
  // A guest that did not become a session, and why.
  std::function<void(const Peer&, const std::string& why)> refused;
};

class Listener {
 public:
  // `fd` listens, non-blocking. Use listen_unix or listen_tls (tls.hpp).
  Listener(boost::asio::io_context& io, int fd, std::string unlink_path,
           std::function<std::unique_ptr<Stream>(int fd)> make_stream, ListenerOptions options,
           ListenerHandlers handlers);
  ~Listener();  // stops listening, drops guests, removes the Unix socket; accepted sessions stay
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const;  // 0 on a Unix socket

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The path must not exist; the socket gets mode 0600, and only processes of our own user are heard.
Result<std::unique_ptr<Listener>> listen_unix(boost::asio::io_context& io, const std::string& path,
                                              ListenerOptions options, ListenerHandlers handlers);

}  // namespace elasticrun::net
