// See control_stream.hpp.
#include "launcher/ssh/control_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::size_t most_taken = 32u << 10;

bool for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

// What the stream waits for. Shared, because a handler may run after the stream has gone.
struct ControlStream::Waits {
  Waits(asio::io_context& io, int fd) : socket(io, fd), event(io) {}

  // Returns a handler and sets `pending`, which stays true while its wait is under way.
  auto handler(bool& pending, const std::shared_ptr<Waits>& self) {
    pending = true;
    return [this, &pending, self](const error_code& = {}) {
      pending = false;
      happened = true;
      event.cancel();
    };
  }

  Descriptor socket;
  asio::steady_timer event;  // cancelling it signals that something has happened
  bool happened = false;
  bool ssh_read = false, ssh_write = false, socket_read = false, socket_write = false;
};

ControlStream::ControlStream(asio::io_context& io, SshSession& session, net::Fd socket,
                             std::string came)
    : io_(io),
      session_(session),
      waits_(std::make_shared<Waits>(io, socket.release())),
      raw_(std::move(came)) {}

ControlStream::~ControlStream() {
  error_code ignored;
  waits_->socket.close(ignored);
}

asio::awaitable<SshSession::More> ControlStream::run(std::string& err) {
  for (bool waited = false;;) {
    const std::uint64_t before = session_.taken_in();
    const bool moved = move(err) || session_.taken_in() != before;
    if (!err.empty()) co_return SshSession::More::yes;
    if (moved) {
      co_await asio::post(io_, asio::use_awaitable);  // lets other ready handlers run
      continue;
    }
    const SshSession::More more = session_.more();
    if (more == SshSession::More::lost || (more == SshSession::More::ended && incoming_.empty()))
      co_return more;
    if (waited) co_return SshSession::More::yes;
    co_await wait();
    waited = true;
  }
}

bool ControlStream::move(std::string& err) {
  const bool in = to_socket(err);
  const bool out = to_command();
  return in || out;
}

// Data for a broken socket is thrown away: the command must still be able to end.
bool ControlStream::to_socket(std::string& err) {
  // Nothing more is taken before the socket has taken everything; the command has to wait then.
  bool moved = session_.take(raw_, incoming_.empty() ? most_taken : 0, err);
  if (incoming_.empty()) blocks_.feed(std::exchange(raw_, {}), incoming_);
  if (socket_broken_) incoming_.clear();
  writable_ = true;
  if (!incoming_.empty()) {
    const ssize_t n =
        ::send(waits_->socket.native_handle(), incoming_.data(), incoming_.size(), MSG_NOSIGNAL);
    if (n > 0) incoming_.erase(0, static_cast<std::size_t>(n));
    moved = moved || n > 0;
    writable_ = n >= 0 || !for_later(errno);
    socket_broken_ = n < 0 && writable_;
  }
  const bool ended = blocks_.ended() || session_.output_ended();
  if (incoming_.empty() && ended && !std::exchange(told_end_, true))
    ::shutdown(waits_->socket.native_handle(), SHUT_WR);
  return moved;
}

bool ControlStream::to_command() {
  if (outgoing_.empty() && !socket_ended_) {
    std::array<char, most_taken> buffer;
    const ssize_t n = ::recv(waits_->socket.native_handle(), buffer.data(), buffer.size(), 0);
    if (n > 0) outgoing_.assign(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && !for_later(errno))) {
      socket_ended_ = true;
      socket_broken_ = socket_broken_ || n < 0;
      session_.end_input();
    }
  }
  if (outgoing_.empty()) return false;
  const std::size_t given = session_.give(outgoing_);
  outgoing_.erase(0, given);
  return given > 0;
}

asio::awaitable<void> ControlStream::wait() {
  Waits& w = *waits_;
  if (!w.ssh_read) session_.watch(false, w.handler(w.ssh_read, waits_));
  if (!w.ssh_write && session_.wants_room()) session_.watch(true, w.handler(w.ssh_write, waits_));
  if (!w.socket_read && outgoing_.empty() && !socket_ended_)
    w.socket.async_wait(Descriptor::wait_read, w.handler(w.socket_read, waits_));
  if (!w.socket_write && !writable_)
    w.socket.async_wait(Descriptor::wait_write, w.handler(w.socket_write, waits_));
  if (!std::exchange(w.happened, false)) {
    error_code cancelled;
    w.event.expires_at(asio::steady_timer::time_point::max());
    co_await w.event.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  w.happened = false;
}

}  // namespace elasticrun::launcher::ssh
