// See session.hpp. A session has three states. Open: it reads when it has handlers and writes when
// something is queued. Closing: it flushes, shuts down its sending side, and reads until the peer
// closes as well (to close with unread bytes makes the kernel send a reset, which can destroy what
// the peer has not read yet). Closed: it has yet to call on_close, once.
#include "net/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "net/stream.hpp"
#include "wire/frame.hpp"

namespace elasticrun::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t read_bytes = 64u << 10;
// The most bulk in one write; control frames wait for at most this much (or one bulk frame).
constexpr std::size_t bulk_write_bytes = 64u << 10;
// The memory of a write buffer above this size is given back.
constexpr std::size_t keep_capacity = 1u << 20;
// After a failed write: time to read what the peer sent before it closed.
constexpr Duration last_words_time = std::chrono::seconds(1);

std::string reason_of(const error_code& ec) {
  if (ec == asio::error::eof) return "the other side closed the connection";
  return fmt::format("the connection broke: {}", ec.message());
}

}  // namespace

struct Session::Impl : std::enable_shared_from_this<Session::Impl> {
  enum class State { open, closing, closed };

  Impl(asio::io_context& context, std::unique_ptr<Stream> s)
      : io(context), stream(std::move(s)), reader(wire::frame_bytes_max), deadline(context) {}

  void start(Handlers new_handlers, std::size_t payload_max);
  bool has_room_for(std::size_t bytes);
  bool fits_a_frame(std::string_view payload);
  void queue_control(WorkerId worker, std::string_view payload, bool passing);
  void queue_bulk(std::string frame);
  void close(Duration flush_time);
  void end(std::string why);
  void abandon();

  void post_pump();
  void pump();
  void read();
  void post_flush();
  void flush();
  void written(const error_code& ec);
  void end_at(Duration time, const char* why);
  void await_taking();
  void tell_close();
  void tell_written();
  std::size_t queued_bytes() const { return control.size() + writing.size() + bulk_bytes; }

  asio::io_context& io;
  std::unique_ptr<Stream> stream;
  wire::FrameReader reader;
  std::array<char, read_bytes> input;
  // Shared, because a handler may replace or drop the handlers: it must not be destroyed while it
  // runs.
  std::shared_ptr<Handlers> handlers;

  std::string control;           // waiting frames, in order
  std::deque<std::string> bulk;  // one waiting frame each
  std::size_t bulk_bytes = 0;
  std::string writing;         // being written; empty: no write under way
  bool bulk_was_full = false;  // since then not yet half empty
  std::uint64_t received = 0;  // frames that are not passing

  State state = State::open;
  bool reading = false, flush_posted = false, pump_posted = false, finished = false;
  bool write_failed = false, told = false;
  std::function<void()> on_written;
  std::size_t send_max = wire::frame_bytes_max;  // of one payload
  std::string reason;                            // why the session closed, or why a write failed
  Duration patience{};                           // flush time of close
  asio::steady_timer deadline;                   // of closing, or of reading after a failed write
};

void Session::Impl::start(Handlers new_handlers, std::size_t payload_max) {
  ER_CHECK(new_handlers.on_frame && new_handlers.on_close);
  handlers = std::make_shared<Handlers>(std::move(new_handlers));
  reader.set_payload_max(payload_max);
  post_pump();
}

void Session::Impl::post_pump() {
  if (std::exchange(pump_posted, true)) return;
  asio::post(io, [self = shared_from_this()] {
    self->pump_posted = false;
    self->pump();
  });
}

// Delivers the frames that have arrived, then reads on. While there are no handlers, the peer's
// bytes wait in the kernel.
void Session::Impl::pump() {
  while (state == State::open && handlers) {
    Result<std::optional<wire::Frame>> next = reader.next();
    if (!next) return end(next.error().text);
    if (!*next) break;
    const std::shared_ptr<Handlers> keep = handlers;
    received += !(*next)->passing;
    keep->on_frame((*next)->worker, (*next)->payload);
  }
  if (state == State::closed) return tell_close();
  if (handlers || state == State::closing) read();
}

void Session::Impl::read() {
  if (std::exchange(reading, true)) return;
  stream->read_some(input.data(), input.size(),
                    [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                      self->reading = false;
                      if (self->state == State::closed) return;
                      if (ec && self->state == State::closing) return self->end("closed here");
                      if (ec) return self->end(self->write_failed ? self->reason : reason_of(ec));
                      if (self->state == State::open)
                        self->reader.feed(std::string_view(self->input.data(), bytes));
                      self->pump();
                    });
}

bool Session::Impl::has_room_for(std::size_t bytes) {
  if (state != State::open || write_failed) return false;  // on_close reports it
  if (queued_bytes() + bytes <= wire::control_queue_max) return true;
  end(fmt::format("the other side does not read: {} bytes wait for it", queued_bytes()));
  return false;
}

// A peer would take a longer frame for a mistake, so the connection ends here and says why.
bool Session::Impl::fits_a_frame(std::string_view payload) {
  if (payload.size() <= send_max) return true;
  if (state == State::open)
    end(fmt::format("a message of {} bytes is longer than {}", payload.size(), send_max));
  return false;
}

void Session::Impl::queue_control(WorkerId worker, std::string_view payload, bool passing) {
  if (!fits_a_frame(payload) || !has_room_for(payload.size())) return;
  wire::append_frame(control, worker, payload, passing);
  post_flush();
}

void Session::Impl::queue_bulk(std::string frame) {
  if (!has_room_for(frame.size())) return;
  bulk_bytes += frame.size();
  bulk.push_back(std::move(frame));
  bulk_was_full = bulk_was_full || bulk_bytes >= wire::bulk_queue_high;
  post_flush();
}

// Posted, so that all frames of one turn of the event loop go out in one write.
void Session::Impl::post_flush() {
  if (std::exchange(flush_posted, true)) return;
  asio::post(io, [self = shared_from_this()] {
    self->flush_posted = false;
    self->flush();
  });
}

void Session::Impl::flush() {
  if (state == State::closed || write_failed) return tell_written();
  if (!writing.empty()) return;
  if (!control.empty()) {
    std::swap(control, writing);
  } else {
    while (!bulk.empty() &&
           (writing.empty() || writing.size() + bulk.front().size() <= bulk_write_bytes)) {
      bulk_bytes -= bulk.front().size();
      if (writing.empty()) {
        writing = std::move(bulk.front());
      } else {
        writing += bulk.front();
      }
      bulk.pop_front();
    }
  }
  if (!writing.empty()) {
    stream->write_all(writing, [self = shared_from_this()](const error_code& ec, std::size_t) {
      self->written(ec);
    });
    return;
  }
  if (state == State::closing && !std::exchange(finished, true)) stream->finish();
  tell_written();
}

void Session::Impl::written(const error_code& ec) {
  writing.clear();
  if (writing.capacity() > keep_capacity) writing.shrink_to_fit();
  if (state == State::closed) return;
  if (ec && state == State::closing) return end("closed here; the other side did not take all");
  if (state == State::closing) await_taking();
  if (ec) {
    write_failed = true;
    reason = reason_of(ec);
    end_at(last_words_time, reason.c_str());
    return tell_written();
  }
  flush();
  if (!bulk_was_full || bulk_bytes > wire::bulk_queue_high / 2) return;
  bulk_was_full = false;
  if (const std::shared_ptr<Handlers> keep = handlers; keep && keep->on_bulk_drained)
    keep->on_bulk_drained();
}

void Session::Impl::end_at(Duration time, const char* why) {
  deadline.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(time));
  deadline.async_wait([self = shared_from_this(), text = std::string(why)](const error_code& ec) {
    if (!ec) self->end(text);
  });
}

void Session::Impl::await_taking() {
  end_at(patience, "closed here; the other side did not take all in time");
}

void Session::Impl::close(Duration flush_time) {
  if (state != State::open) return;
  if (write_failed) return end(reason);
  state = State::closing;
  patience = flush_time;
  await_taking();
  post_flush();
  post_pump();
}

void Session::Impl::end(std::string why) {
  if (state == State::closed) return;
  state = State::closed;
  reason = std::move(why);
  deadline.cancel();
  stream->close();
  control.clear();
  bulk_bytes = 0;
  bulk_was_full = false;
  post_pump();
}

void Session::Impl::tell_close() {
  tell_written();
  if (!handlers || std::exchange(told, true)) return;
  const std::shared_ptr<Handlers> keep = std::exchange(handlers, nullptr);
  keep->on_close(reason);
}

void Session::Impl::tell_written() {
  if (const auto done = std::exchange(on_written, nullptr)) done();
}

void Session::Impl::abandon() {
  handlers.reset();
  on_written = nullptr;
  if (state != State::closing) end("dropped");
}

Session::Session(asio::io_context& io, std::unique_ptr<Stream> stream)
    : impl_(std::make_shared<Impl>(io, std::move(stream))) {}
Session::~Session() { impl_->abandon(); }
void Session::start(Handlers handlers, std::size_t payload_max) {
  impl_->start(std::move(handlers), payload_max);
}
void Session::limit_sends(std::size_t payload_max) {
  impl_->send_max = std::min(payload_max, wire::frame_bytes_max);
}
void Session::hold() {
  impl_->handlers.reset();
  impl_->received = 0;
}
std::uint64_t Session::received() const { return impl_->received; }
void Session::send(WorkerId worker, std::string_view payload) {
  impl_->queue_control(worker, payload, false);
}
void Session::send_passing(WorkerId worker, std::string_view payload) {
  impl_->queue_control(worker, payload, true);
}
void Session::send_bulk(WorkerId worker, std::string_view payload) {
  if (!impl_->fits_a_frame(payload)) return;
  std::string frame;
  wire::append_frame(frame, worker, payload, true);
  impl_->queue_bulk(std::move(frame));
}
void Session::send_bulk_frame(std::string frame) { impl_->queue_bulk(std::move(frame)); }
std::deque<std::string> Session::unwritten_bulk() { return std::exchange(impl_->bulk, {}); }
bool Session::bulk_full() const { return impl_->bulk_was_full; }
void Session::when_written(std::function<void()> done) {
  impl_->on_written = std::move(done);
  impl_->post_flush();
}
void Session::close(Duration flush_time) { impl_->close(flush_time); }
void Session::abort() { impl_->end("aborted here"); }

void Session::handshake(std::function<void(Result<void>)> done) {
  // The handler keeps the stream alive, even if the session is destroyed meanwhile.
  impl_->stream->handshake(
      [self = impl_, done = std::move(done)](const error_code& ec, std::size_t) {
        if (self->state == Impl::State::open) done(ec ? Error{ec.message()} : Result<void>());
      });
}

std::string Session::identity() const { return impl_->stream->identity(); }
std::string Session::proof(Side side) const { return impl_->stream->proof(side); }

std::unique_ptr<Session> adopt(asio::io_context& io, int fd) {
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return std::make_unique<Session>(io, make_plain_stream(io, fd));
}

}  // namespace elasticrun::net
