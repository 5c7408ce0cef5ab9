// One framed session over one byte stream: TCP with TLS, a Unix socket, or one end of a socketpair.
//
// Every part that talks to a peer (the controller, the agent on both of its sides, the library in
// the user's process) uses this class. It owns the stream, cuts it into frames, and keeps two
// queues: *control* always goes first, *bulk* (output of programs) fills what is left. With a
// single queue, a flood of output would delay a heartbeat until the peer counts as dead.
//
// Callbacks instead of coroutines: a session is one read loop and one write loop of two functions
// each. Coroutines here would cost 10 s in each build, and in each session two coroutine frames
// that need an owner.
//
// One thread: everything is called on the thread that runs the io_context, and no callback ever
// runs inside a call of send, close or start. Sessions must be destroyed before their io_context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/limits.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::net {

class Stream;
enum class Side;

// A handler may do anything, even destroy the session that calls it.
struct Handlers {
  // The payload is valid only during the call.
  std::function<void(WorkerId, std::string_view payload)> on_frame;
  // Called exactly once, after the last frame; also after close and abort. Not called once the
  // session is destroyed.
  std::function<void(std::string reason)> on_close;
  // Called when the bulk queue was full and is half empty again. Optional.
  std::function<void()> on_bulk_drained = {};
};

inline constexpr Duration flush_time_default = std::chrono::seconds(2);

class Session {
 public:
  Session(boost::asio::io_context& io, std::unique_ptr<Stream> stream);
  // Aborts, unless close was called before: then the flush goes on in the background.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Begins to read, or continues with other handlers after hold: they get the frames that have
  // arrived since.
  void start(Handlers handlers, std::size_t payload_max = wire::frame_bytes_max);
  // `payload_max`: bytes of the longest payload that the other side accepts, if that is less than a
  // frame may have. A longer one ends the session here, with a reason.
  void limit_sends(std::size_t payload_max);
  // Drops the handlers and reads no further frame until start.
  void hold();

  // Number of frames that were given to handlers since hold(), or since the beginning. Passing
  // frames are not counted.
  std::uint64_t received() const;

  // Sends a control frame. The session ends if the peer does not read and control_queue_max bytes
  // wait for it.
  void send(WorkerId worker, std::string_view payload);
  // Likewise, but as a passing frame, which is not counted.
  void send_passing(WorkerId worker, std::string_view payload);
  // Sends a bulk frame: only when no control frame waits, and not counted. If bulk_full, wait for
  // on_bulk_drained first.
  void send_bulk(WorkerId worker, std::string_view payload);
  bool bulk_full() const;
  // Takes out the whole bulk frames that were not written, even from a closed session.
  std::deque<std::string> unwritten_bulk();
  // Sends one of them over this session.
  void send_bulk_frame(std::string frame);

  // Calls `done` once: when the queues are empty and written, or the session has closed. One at a
  // time.
  void when_written(std::function<void()> done);

  // Sends what is queued (control and bulk). Closes when the peer has taken all of it, or has taken
  // nothing for `flush_time`.
  void close(Duration flush_time = flush_time_default);
  // Closes now; queued frames are lost.
  void abort();

  // Runs the stream's own handshake (TLS) before the first frame. For the dialling and the
  // listening code.
  void handshake(std::function<void(Result<void>)> done);
  // The stream's identity and proof, after its handshake (stream.hpp).
  std::string identity() const;
  std::string proof(Side side) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A session over a connected stream socket (one end of a socketpair), without a greeting. Owns fd.
std::unique_ptr<Session> adopt(boost::asio::io_context& io, int fd);

}  // namespace elasticrun::net
