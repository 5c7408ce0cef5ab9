// A conversation that goes on over one connection after the other.
//
// A connection may be lost while both ends are well: a firewall is reloaded, a table of connections
// flushed, a cable pulled. Whoever dialled dials again, both greetings say how many frames they
// have received, and what is missing is sent once more: nothing is lost, nothing comes twice.
//
// Numbered are only the frames of send(). Those of send_passing() (heartbeats, which would say
// something wrong later) and of send_bulk() (output of programs, too much to keep) are for this
// connection alone; bulk that was not written yet goes over to the next one where that is wanted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/session.hpp"
#include "wire/resend_queue.hpp"

namespace elasticrun::net {

class Resumable {
 public:
  // A handler may do anything, also destroy this object.
  struct Handlers {
    std::function<void(WorkerId, std::string_view payload)> on_frame;
    // The connection is lost, or was closed; attach() may follow.
    std::function<void(const std::string& reason)> on_lost;
    std::function<void()> on_bulk_drained = {};
    bool keep_bulk = true;  // for the next connection; else it is asked for again
  };

  explicit Resumable(Handlers handlers);
  ~Resumable();
  Resumable(const Resumable&) = delete;
  Resumable& operator=(const Resumable&) = delete;

  // Goes on over this session, whose peer has received so many of our frames. False: that cannot
  // be, or too much has been sent meanwhile; the session is dropped then.
  bool attach(std::unique_ptr<Session> session, std::uint64_t peer_has_received);
  // Drops the connection, if there is one, without on_lost: nothing more is received over it.
  void hang_up();
  bool attached() const { return session_ != nullptr; }
  // False: the queue was too small, and no session can be attached.
  bool resumable() const { return unacknowledged_.is_whole(); }

  // Numbered frames of the peer, over all connections: what a greeting says.
  std::uint64_t received() const;
  // The peer says that it has so many of ours.
  void acknowledged(std::uint64_t count);

  void send(WorkerId worker, std::string_view payload);
  // Nothing happens while there is no connection.
  void send_passing(WorkerId worker, std::string_view payload);
  // Look at bulk_full first, which holds as well while there is no connection.
  void send_bulk(WorkerId worker, std::string_view payload);
  bool bulk_full() const { return !session_ || session_->bulk_full(); }
  // As Session::close; on_lost follows.
  void close(Duration flush_time = flush_time_default);

 private:
  void lost(const std::string& reason);

  Handlers handlers_;
  std::unique_ptr<Session> session_;
  wire::ResendQueue unacknowledged_;
  std::uint64_t received_before_ = 0;  // over earlier connections
  std::deque<std::string> bulk_;       // frames of the last connection that were not written
};

}  // namespace elasticrun::net
