// See dial.hpp. A Dial is owned by the Operation that the caller holds. All handlers that it has
// started hold only weak pointers to it, so destroying the Operation cancels all of them at once.
#include "net/dial.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "net/sockets.hpp"
#include "net/stream.hpp"
#include "wire/codec.hpp"

namespace elasticrun::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

int connect_error(int fd) {
  int error_number = 0;
  socklen_t size = sizeof error_number;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) return errno;
  return error_number;
}

class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(asio::io_context& io, std::string where,
       std::function<std::unique_ptr<Stream>(int)> make_stream, wire::Hello hello, DialTime time,
       DialDone done)
      : io_(io),
        where_(std::move(where)),
        make_stream_(std::move(make_stream)),
        hello_(std::move(hello)),
        time_(time),
        done_(std::move(done)),
        socket_(io),
        deadline_(io) {}

  void begin(const Result<int>& socket);

 private:
  void allow(Duration time);
  void connected();
  void greet(const Result<void>& handshake);
  void welcomed(WorkerId worker, std::string_view payload);
  void fail(std::string text, int number = 0);

  asio::io_context& io_;
  std::string where_;
  std::function<std::unique_ptr<Stream>(int)> make_stream_;
  wire::Hello hello_;
  const DialTime time_;
  DialDone done_;                          // empty once called
  asio::posix::stream_descriptor socket_;  // while connecting
  asio::steady_timer deadline_;
  std::unique_ptr<Session> session_;  // from the handshake to the end of the greeting
};

void Dial::begin(const Result<int>& socket) {
  if (!socket) {
    asio::post(io_, [weak = weak_from_this(), error = socket.error()] {
      if (const auto self = weak.lock()) self->fail(error.text, error.number);
    });
    return;
  }
  socket_.assign(*socket);
  socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                     [weak = weak_from_this()](const error_code& ec) {
                       const auto self = weak.lock();
                       if (self && !ec) self->connected();
                     });
  allow(time_.connect);
}

void Dial::allow(Duration time) {
  deadline_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(time));
  deadline_.async_wait([weak = weak_from_this(), time](const error_code& ec) {
    const auto self = weak.lock();
    if (self && !ec)
      self->fail(fmt::format("{} did not answer within {}", self->where_, to_text(time)));
  });
}

void Dial::connected() {
  if (!done_) return;  // the deadline came first
  const int error_number = connect_error(socket_.native_handle());
  if (error_number != 0)
    return fail(fmt::format("cannot connect to {}: {}", where_, error_text(error_number)),
                error_number);
  if (time_.greeting) allow(*time_.greeting);
  session_ = std::make_unique<Session>(io_, make_stream_(socket_.release()));
  session_->handshake([weak = weak_from_this()](const Result<void>& handshake) {
    if (const auto self = weak.lock()) self->greet(handshake);
  });
}

void Dial::greet(const Result<void>& handshake) {
  if (!handshake)
    return fail(fmt::format("{} does not share our key: {}", where_, handshake.error().text));
  hello_.proof = session_->proof(Side::dialler);
  session_->limit_sends(wire::greeting_bytes_max);
  session_->send(WorkerId(), wire::encode(hello_));
  session_->start({.on_frame =
                       [weak = weak_from_this()](WorkerId worker, std::string_view payload) {
                         if (const auto self = weak.lock()) self->welcomed(worker, payload);
                       },
                   .on_close =
                       [weak = weak_from_this()](const std::string& reason) {
                         const auto self = weak.lock();
                         if (self)
                           self->fail(fmt::format("{} did not greet: {}", self->where_, reason));
                       }},
                  wire::welcome_bytes_max);
}

void Dial::welcomed(WorkerId worker, std::string_view payload) {
  Result<wire::Welcome> welcome = wire::decode<wire::Welcome>(payload);
  if (!welcome) return fail(fmt::format("{} did not greet: {}", where_, welcome.error().text));
  if (worker != WorkerId())
    return fail(fmt::format("{} did not greet: a message came first", where_));
  if (welcome->proof != session_->proof(Side::listener))
    return fail(fmt::format("{} does not share our key: its greeting does not prove it", where_));
  if (!welcome->refused.empty())
    return fail(fmt::format("{} refused: {}", where_, welcome->refused), EACCES);
  if (welcome->protocol != wire::protocol)
    return fail(
        fmt::format("{} speaks protocol {} (version {}), not {}; use one version on both sides",
                    where_, welcome->protocol, welcome->version, wire::protocol));
  deadline_.cancel();
  session_->limit_sends(wire::frame_bytes_max);
  session_->hold();
  std::exchange(done_, nullptr)(Greeted{std::move(session_), std::move(*welcome)});
}

void Dial::fail(std::string text, int number) {
  if (!done_) return;
  deadline_.cancel();
  error_code ignored;  // the socket is closed already if a session has taken it over
  socket_.close(ignored);
  session_.reset();
  std::exchange(done_, nullptr)(Error{std::move(text), number});
}

}  // namespace

Operation dial_socket(asio::io_context& io, Result<int> socket, std::string where,
                      std::function<std::unique_ptr<Stream>(int fd)> make_stream,
                      const wire::Hello& hello, DialTime time, DialDone done) {
  const auto dial = std::make_shared<Dial>(io, std::move(where), std::move(make_stream), hello,
                                           time, std::move(done));
  dial->begin(socket);
  return dial;
}

Operation dial_unix(asio::io_context& io, const std::string& path, const wire::Hello& hello,
                    Duration deadline, DialDone done) {
  return dial_socket(
      io, connect_unix_socket(path), path, [&io](int fd) { return make_plain_stream(io, fd); },
      hello, deadline, std::move(done));
}

}  // namespace elasticrun::net
