// One framed session over one byte stream: TCP with TLS, a Unix socket, or one end of a socketpair.
//
// Everybody who talks to a peer (controller, agent on both of its sides, the library in the user's
// process) talks through this class. It owns the stream, cuts frames, and keeps two queues:
// *control* always goes first, *bulk* (output of programs) fills what is left. One queue with a
// flood of output in it would delay a heartbeat until the peer counts as dead.
//
// Callbacks instead of coroutines: a session is one read loop and one write loop, two functions
// each, and a coroutine here would cost each build 10 s and each session two frames that need an
// owner.
//
// One thread: everything is called on the thread that runs the io_context, and no callback ever
// runs inside a call of send, close or start. Sessions must be gone before their io_context.
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

// A handler may do anything, also destroy the session that calls it.
struct Handlers {
  // The payload is valid during the call.
  std::function<void(WorkerId, std::string_view payload)> on_frame;
  // Exactly once, after the last frame; also after close and abort. Not after the session's
  // destruction.
  std::function<void(std::string reason)> on_close;
  // The bulk queue was full and is half empty again. May be left out.
  std::function<void()> on_bulk_drained = {};
};

inline constexpr Duration flush_time_default = std::chrono::seconds(2);

class Session {
 public:
  Session(boost::asio::io_context& io, std::unique_ptr<Stream> stream);
  // Without a close before: an abort. After a close the flush goes on in the background.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Begins to read, or goes on with other handlers: what has arrived since hold goes to the new
  // ones.
  void start(Handlers handlers, std::size_t payload_max = wire::frame_bytes_max);
  // Drops the handlers and reads no further frame until start.
  void hold();

  // Frames that handlers were given since hold(), or since the beginning; passing ones not counted.
  std::uint64_t received() const;

  // Control. A peer that does not read until control_queue_max bytes wait for it loses the session.
  void send(WorkerId worker, std::string_view payload);
  // Likewise, but marked as one that is not counted.
  void send_passing(WorkerId worker, std::string_view payload);
  // Bulk: sent when no control waits, and not counted. Look at bulk_full first and wait for
  // on_bulk_drained.
  void send_bulk(WorkerId worker, std::string_view payload);
  bool bulk_full() const;
  // Whole frames of bulk that were not written, also when the session is closed; and one of them
  // for another session.
  std::deque<std::string> unwritten_bulk();
  void send_bulk_frame(std::string frame);

  // Sends what is queued (control and bulk) and closes when the peer has taken it, or has taken
  // nothing for that time.
  void close(Duration flush_time = flush_time_default);
  // Closes now; queued frames are lost.
  void abort();

  // Runs the stream's own handshake (TLS) before the first frame; `done` gets an empty text or why
  // not. For the dialling and the listening code.
  void handshake(std::function<void(std::string error)> done);
  // Of the stream, after its handshake (stream.hpp).
  std::string identity() const;
  std::string proof(Side side) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A session over a connected stream socket (one end of a socketpair), without a greeting. Owns fd.
std::unique_ptr<Session> adopt(boost::asio::io_context& io, int fd);

}  // namespace elasticrun::net
