// The connections to the workers' libraries on this host: the Unix socket on which they reach their
// agent, and their sessions.
//
// A job lasts for weeks, and its socket lies where others clean up: a user, a script, a cleaner
// that ignores locks. A listening socket does not notice that its path is gone, and every worker
// that starts afterwards would wait in vain. So the path is checked now and then and before each
// start of a worker, and if it is gone the agent listens there again. Existing sessions do not need
// the path.
//
// The mode of the directory keeps other users out. Any process of this user may connect, but it is
// admitted only if the worker that it names has started it.
#pragma once

#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
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
    // Bytes of this worker's messages that the controller has not acknowledged yet.
    std::function<std::size_t(WorkerId)> untaken;
  };
  // Short enough for cleaners by age, which remove only what is older than some days.
  static constexpr Duration interval_default = std::chrono::hours(1);

  // The socket is made in `directory`, which is ours alone.
  WorkerSocket(boost::asio::io_context& io, std::string directory,
               const executors::AgentStart& start, Handlers handlers,
               Duration interval = interval_default);

  const std::string& path() const { return path_; }
  // Makes sure that the agent listens at path(): it did already, or does so for the first time or
  // again. Otherwise the error says why not.
  Result<void> ensure();
  // Sends to one worker; does nothing if that is not connected. A message in the envelope for
  // several workers goes to each of them.
  void send(WorkerId worker, std::string_view message);
  // Reads again from the workers that no longer have to wait.
  void read_on();
  // Sends to all connected workers, and as the first message to each that connects before the next
  // call of tell_all.
  void tell_all(std::string message);

 private:
  bool is_there() const;
  Result<void> listen();
  Result<void> make_directory_again();
  void look_after();
  Result<void> admit(WorkerId worker, pid_t peer);
  void accepted(WorkerId worker, std::unique_ptr<net::Session> session);
  void read(WorkerId worker, net::Session& session);
  void take(WorkerId worker, std::string_view message);
  bool must_wait(WorkerId worker) const;

  boost::asio::io_context& io_;
  const std::string directory_;
  const std::string path_;
  const net::ListenerOptions options_;
  const Handlers handlers_;
  const Duration interval_;
  boost::asio::steady_timer timer_;
  Peers peers_;
  std::map<WorkerId, std::unique_ptr<net::Session>> sessions_;
  std::set<WorkerId> waiting_;  // workers from which nothing is read now
  std::string notice_;          // latest message of tell_all; empty: none yet
  std::unique_ptr<net::Listener> listener_;
  ino_t number_ = 0;  // inode number of the socket
  net::Fd lock_;      // of the directory, if it was made again
};

}  // namespace elasticrun::launcher::agent::workers
