// Dialling: connect, do the TLS handshake if there is one, and greet.
//
// The dialler speaks first (wire::Hello), and the other side answers with a wire::Welcome that may
// refuse. A session that comes from here has a peer that speaks our protocol and has accepted us.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/session.hpp"
#include "wire/greeting.hpp"

namespace elasticrun::net {

inline constexpr Duration greeting_time_default = std::chrono::seconds(5);

// One deadline for it all, or one to connect and another one from then on.
struct DialTime {
  DialTime(Duration all) : connect(all) {}
  DialTime(Duration connect_time, Duration greeting_time)
      : connect(connect_time), greeting(greeting_time) {}

  Duration connect;
  std::optional<Duration> greeting;
};

struct Greeted {
  std::unique_ptr<Session> session;  // on hold: it delivers frames after Session::start
  wire::Welcome welcome;
};
// Called once, never inside the call of dial. An error's number is the system's error number if the
// connection could not be made, and EACCES if the other side's Welcome refused us.
using DialDone = std::function<void(Result<Greeted>)>;
// Owns the dialling under way: its destruction cancels that, and the handler is not called.
using Operation = std::shared_ptr<void>;

[[nodiscard]] Operation dial_unix(boost::asio::io_context& io, const std::string& path,
                                  const wire::Hello& hello, Duration deadline, DialDone done);

// The common part of dial_unix and dial_tls (tls.hpp): `socket` is connecting (non-blocking),
// `where` names the peer in errors, and `make_stream` turns the descriptor into a stream.
[[nodiscard]] Operation dial_socket(boost::asio::io_context& io, Result<int> socket,
                                    std::string where,
                                    std::function<std::unique_ptr<Stream>(int fd)> make_stream,
                                    const wire::Hello& hello, DialTime time, DialDone done);

}  // namespace elasticrun::net
