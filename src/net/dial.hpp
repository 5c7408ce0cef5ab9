// Dialling: connect, handshake where there is one, greet; one deadline over all of it.
//
// The dialler speaks first (wire::Hello), the other side answers with a wire::Welcome that may
// refuse. Who gets a session from here knows that the peer speaks our protocol and wants us.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/session.hpp"
#include "wire/messages.hpp"

namespace elasticrun::net {

inline constexpr Duration greeting_time_default = std::chrono::seconds(5);

struct Greeted {
  std::unique_ptr<Session> session;  // held: frames come after its start
  wire::Welcome welcome;
};
// Called once, never inside the call of dial. An error has the number of the system where the
// connection could not be made, and EACCES where the other side has refused us by word.
using DialDone = std::function<void(Result<Greeted>)>;
// Owns what is under way: letting go of it cancels, and the handler is not called any more.
using Operation = std::shared_ptr<void>;

[[nodiscard]] Operation dial_unix(boost::asio::io_context& io, const std::string& path,
                                  const wire::Hello& hello, Duration deadline, DialDone done);

// For dial_unix and dial_tls (tls.hpp): `socket` is connecting (non-blocking), `where` names the
// peer in errors, `make_stream` turns the descriptor into a stream.
[[nodiscard]] Operation dial_socket(boost::asio::io_context& io, Result<int> socket,
                                    std::string where,
                                    std::function<std::unique_ptr<Stream>(int fd)> make_stream,
                                    const wire::Hello& hello, Duration deadline, DialDone done);

}  // namespace elasticrun::net
