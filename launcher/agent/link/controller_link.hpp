// The agent's conversation with its controller, over a succession of connections (a driver).
//
// A connection that is lost is dialled again at once, at the address that had worked; what was sent
// but not received goes over the next connection (net/resumable.hpp). redial.hpp decides when to
// try and when the controller counts as gone.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agent/link/controller_dialer.hpp"
#include "launcher/agent/link/redial.hpp"
#include "launcher/executors/agent_start.hpp"
#include "launcher/machine/gpus.hpp"
#include "net/resumable.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::link {

class ControllerLink {
 public:
  struct Handlers {
    // The first greeting, or why there is none. Frames come only after it.
    std::function<void(Result<Dialled>)> reached;
    std::function<void(WorkerId, std::string_view payload)> frame;
    std::function<void()> away;  // the connection is lost and is being dialled again
    // The controller's machine has accepted a connection, but its program does not answer.
    // Repeated each quarter of a lease.
    std::function<void()> stands_still;
    std::function<void()> back;
    // The controller's port is closed: no program listens there.
    std::function<void(const std::string& reason)> controller_gone;
    // The controller has refused to take us back, or more is to be sent again than we keep.
    std::function<void(const std::string& reason)> given_up;
    std::function<void()> bulk_drained;
  };
  ControllerLink(boost::asio::io_context& io, Handlers handlers);
  ControllerLink(const ControllerLink&) = delete;
  ControllerLink& operator=(const ControllerLink&) = delete;

  // Dials for the first time. `for_others`: addresses of this host that may be given to other
  // hosts, best first. `gpus`: by slot.
  void begin(const executors::AgentStart& start, std::vector<std::string> for_others,
             std::vector<machine::Gpu> gpus);
  // Sets the host and key under which an agent that joined by itself is known from now on.
  void learned(const executors::AgentStart& start);

  // Nothing is sent before the first greeting or after the end. What is sent while the connection
  // is away waits for the next one.
  void send(WorkerId worker, std::string_view payload);
  void send_heartbeat(wire::agent::Heartbeat heartbeat);
  void acknowledged(std::uint64_t count) { link_.acknowledged(count); }
  // Bytes of this worker's messages that the controller has not acknowledged.
  std::size_t untaken(WorkerId worker) const { return over_ ? 0 : link_.unacknowledged(worker); }
  void send_bulk(std::string_view payload);
  // Whether output has to wait. False after the end: output is discarded then.
  bool bulk_full() const { return !over_ && link_.bulk_full(); }

  // Flushes what was sent and closes; calls `closed` when that is done, at once if there is no
  // connection.
  void close(Duration flush_time, std::function<void()> closed);
  // For when the controller is gone: stops dialling and sending for good.
  void end();

 private:
  void dial();
  void reached(Result<Dialled> reached);
  void resumed(Result<Dialled> reached);
  void lost(const std::string& reason);
  void arm();
  void watch();

  boost::asio::io_context& io_;
  Handlers handlers_;
  executors::AgentStart start_;
  std::vector<std::string> for_others_;
  std::vector<machine::Gpu> gpus_;
  std::unique_ptr<ControllerDialer> reach_;  // must live as long as its session
  net::Resumable link_;
  Redial redial_;
  boost::asio::steady_timer timer_;
  std::function<void()> closed_;
  bool over_ = false;
};

}  // namespace elasticrun::launcher::agent::link
