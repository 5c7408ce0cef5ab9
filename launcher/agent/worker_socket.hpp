// The Unix socket on which the libraries of the workers reach their agent.
//
// A job lasts for weeks, and its socket lies where others clean up: a person, a script, a cleaner
// that knows no locks. A listening socket does not notice that its path is gone, and every worker
// that starts afterwards would wait in vain. So the path is looked at now and then and before each
// start of a worker, and where it is gone the agent listens there anew. Connections that exist do
// not need the path.
#pragma once

#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "launcher/agent_start.hpp"
#include "net/listener.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher {

class WorkerSocket {
 public:
  // Cleaners by age leave alone what is younger than some days.
  static constexpr Duration interval_default = std::chrono::hours(1);

  // In that directory, which is ours alone.
  WorkerSocket(boost::asio::io_context& io, std::string directory, const AgentStart& start,
               net::ListenerHandlers handlers, Duration interval = interval_default);

  const std::string& path() const { return path_; }
  // Listens there when this returns: already, for the first time, or anew. Else says why not.
  Result<void> ensure();

 private:
  bool is_there() const;
  Result<void> listen();
  Result<void> make_directory_again();
  void look_after();

  boost::asio::io_context& io_;
  const std::string directory_;
  const std::string path_;
  const net::ListenerOptions options_;
  const net::ListenerHandlers handlers_;
  const Duration interval_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<net::Listener> listener_;
  ino_t number_ = 0;  // of the socket in its file system
  net::Fd lock_;      // of a directory that was made again
};

}  // namespace elasticrun::launcher
