// The libraries of the workers here: the Unix socket on which they reach their agent, and their
// sessions.
//
// A job lasts for weeks, and its socket lies where others clean up: a person, a script, a cleaner
// that knows no locks. A listening socket does not notice that its path is gone, and every worker
// that starts afterwards would wait in vain. So the path is looked at now and then and before each
// start of a worker, and where it is gone the agent listens there anew. Sessions that exist do not
// need the path.
//
// The mode of the directory keeps other users out. Any process of ours may connect, and is heard
// only when the worker that it names has started it.
#pragma once

#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "launcher/agent/workers/peers.hpp"
#include "launcher/executors/agent_start.hpp"
#include "net/listener.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

class WorkerSocket {
 public:
  struct Handlers {
    std::function<pid_t(WorkerId)> shim_of;  // -1: no such worker runs here
    std::function<void(WorkerId, std::string_view message)> on_message;
    std::function<void(const std::string&)> log;
  };
  // Cleaners by age leave alone what is younger than some days.
  static constexpr Duration interval_default = std::chrono::hours(1);

  // In that directory, which is ours alone.
  WorkerSocket(boost::asio::io_context& io, std::string directory,
               const executors::AgentStart& start, Handlers handlers,
               Duration interval = interval_default);

  const std::string& path() const { return path_; }
  // Listens there when this returns: already, for the first time, or anew. Else says why not.
  Result<void> ensure();
  // To nobody when it is not connected. With the envelope of several workers: to each of them.
  void send(WorkerId worker, std::string_view message);
  // To all that are connected, and first of all to each that comes before the next such message.
  void tell_all(std::string message);

 private:
  bool is_there() const;
  Result<void> listen();
  Result<void> make_directory_again();
  void look_after();
  Result<void> admit(WorkerId worker, pid_t peer);
  void accepted(WorkerId worker, std::unique_ptr<net::Session> session);

  boost::asio::io_context& io_;
  const std::string directory_;
  const std::string path_;
  const net::ListenerOptions options_;
  const Handlers handlers_;
  const Duration interval_;
  boost::asio::steady_timer timer_;
  Peers peers_;
  std::map<WorkerId, std::unique_ptr<net::Session>> sessions_;
  std::string notice_;  // to all; empty: none yet
  std::unique_ptr<net::Listener> listener_;
  ino_t number_ = 0;  // of the socket in its file system
  net::Fd lock_;      // of a directory that was made again
};

}  // namespace elasticrun::launcher::agent::workers
