// A conversation that continues over one connection after another.
//
// A connection may be lost while both ends are well: a firewall is reloaded, a connection table is
// flushed, a cable is pulled. The side that dialled dials again, each side's greeting says how many
// frames it has received, and the missing frames are sent again: none is lost, none comes twice.
//
// Only the frames of send() are numbered. Those of send_passing() (heartbeats, which would be wrong
// later) and of send_bulk() (output of programs, too much to keep) are for the present connection
// alone. Bulk that was not written yet moves to the next connection where that is wanted.
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
  // A handler may do anything, even destroy this object.
  struct Handlers {
    std::function<void(WorkerId, std::string_view payload)> on_frame;
    // The connection is lost, or was closed; attach() may follow.
    std::function<void(const std::string& reason)> on_lost;
    std::function<void()> on_bulk_drained = {};
    // True: unwritten bulk goes over the next connection. False: it is dropped, because the peer
    // asks for it again.
    bool keep_bulk = true;
  };

  explicit Resumable(Handlers handlers);
  ~Resumable();
  Resumable(const Resumable&) = delete;
  Resumable& operator=(const Resumable&) = delete;

  // Continues over this session, whose peer has received `peer_has_received` of our frames. False:
  // that number is impossible, or too much has been sent meanwhile; the session is then dropped.
  bool attach(std::unique_ptr<Session> session, std::uint64_t peer_has_received);
  // Drops the connection, if there is one, without on_lost. Nothing more is received over it.
  void hang_up();
  bool attached() const { return session_ != nullptr; }
  // False: frames for resending did not fit the queue, so no session can be attached.
  bool resumable() const { return unacknowledged_.is_whole(); }

  // Numbered frames received from the peer over all connections: the number for our greeting.
  std::uint64_t received() const;
  // The peer reports that it has received `count` of our numbered frames.
  void acknowledged(std::uint64_t count);
  // The bytes of this worker's frames that the peer has not acknowledged.
  std::size_t unacknowledged(WorkerId worker) const { return unacknowledged_.bytes_of(worker); }

  void send(WorkerId worker, std::string_view payload);
  // Nothing happens while there is no connection.
  void send_passing(WorkerId worker, std::string_view payload);
  // Check bulk_full first, which is also true while there is no connection.
  void send_bulk(WorkerId worker, std::string_view payload);
  bool bulk_full() const { return !session_ || session_->bulk_full(); }
  // Like Session::close; on_lost follows.
  void close(Duration flush_time = flush_time_default);

 private:
  void lost(const std::string& reason);

  Handlers handlers_;
  std::unique_ptr<Session> session_;
  wire::ResendQueue unacknowledged_;
  std::uint64_t received_before_ = 0;  // numbered frames received over earlier connections
  std::deque<std::string> bulk_;       // bulk frames that the last connection did not write
};

}  // namespace elasticrun::net
