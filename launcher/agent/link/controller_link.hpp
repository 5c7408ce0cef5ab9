// The agent's conversation with its controller, over one connection after the other (a driver).
//
// A connection that is lost is dialled again at once, at the address that had worked; what was sent
// and not received goes over the next one (net/resumable.hpp). When to try, and when the controller
// counts as gone, is decided in redial.hpp.
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

namespace elasticrun::launcher::agent::link {

class ControllerLink {
 public:
  struct Handlers {
    // The first greeting, or why there is none. Frames come after it.
    std::function<void(Result<Dialled>)> reached;
    std::function<void(WorkerId, std::string_view payload)> frame;
    std::function<void()> away;  // the connection is lost, and dialled again
    std::function<void()> back;
    // Nobody listens there any more.
    std::function<void(const std::string& reason)> controller_gone;
    // The controller does not want us back.
    std::function<void(const std::string& reason)> given_up;
    std::function<void()> bulk_drained;
  };
  ControllerLink(boost::asio::io_context& io, Handlers handlers);
  ControllerLink(const ControllerLink&) = delete;
  ControllerLink& operator=(const ControllerLink&) = delete;

  // `for_others`: addresses of this host that may be given to others, best first; `gpus`: by slot.
  void begin(const executors::AgentStart& start, std::vector<std::string> for_others,
             std::vector<machine::Gpu> gpus);
  // How an agent that has joined by itself is known from now on.
  void learned(const executors::AgentStart& start);

  // Nothing is sent before the first greeting, nor after the end; what is sent while the connection
  // is away waits for the next one.
  void send(WorkerId worker, std::string_view payload);
  void send_heartbeat(wire::Heartbeat heartbeat);
  void acknowledged(std::uint64_t count) { link_.acknowledged(count); }
  void send_bulk(std::string_view payload);
  // Output has to wait. Never after the end: then it goes nowhere.
  bool bulk_full() const { return !over_ && link_.bulk_full(); }

  // Flushes what was sent and closes; `closed` is called when that is over, at once where there is
  // no connection.
  void close(Duration flush_time, std::function<void()> closed);
  // The controller is gone: nothing is dialled or sent any more.
  void end();

 private:
  void dial();
  void reached(Result<Dialled> reached);
  void resumed(Result<Dialled> reached);
  void lost(const std::string& reason);
  void arm();

  boost::asio::io_context& io_;
  Handlers handlers_;
  executors::AgentStart start_;
  std::vector<std::string> for_others_;
  std::vector<machine::Gpu> gpus_;
  std::unique_ptr<ControllerDialer> reach_;  // as long as its session
  net::Resumable link_;
  Redial redial_;
  boost::asio::steady_timer timer_;
  std::function<void()> closed_;
  bool over_ = false;
};

}  // namespace elasticrun::launcher::agent::link
