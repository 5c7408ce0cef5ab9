// The socket of the rendezvous: agents dial it, greet, and are identified by their host from then
// on.
//
// A thin driver. It decides only what needs no knowledge of the job. A peer with another protocol,
// version or job is rejected, and so is a host that claims to be another one than its key says. A
// host that is connected is not connected twice (the first connection is that of the agent with our
// workers; a second is a mistake or a copy). A connection that is lost may be resumed by the same
// agent until its host is dropped. Everything else is passed on through the handlers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "net/tls.hpp"
#include "rendezvous/server/host_keys.hpp"
#include "wire/agent/messages.hpp"
#include "wire/greeting.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous::server {

struct ServerOptions {
  std::string address = "0.0.0.0";  // numeric; "::" hears both families
  std::uint16_t port = 0;           // 0: the system chooses
  std::uint16_t port_last = 0;      // takes the first free port up to this one; 0: only `port`
  wire::Welcome welcome;            // agents must have the same protocol and version
  HostKeys keys;                    // of the job
  bool hosts_may_join = false;      // the join key is accepted
  net::TcpOptions tcp;
  Duration greeting_time = net::greeting_time_default;
};

// The handlers are called on the io_context's thread, never inside a call of the server. They may
// call the server, but not destroy it.
struct ServerHandlers {
  // True: the job has started, or admitted, an agent with this key. Any other key is refused.
  std::function<bool(const KeyOwner&)> knows;
  // Returns the identity of the agent that greets (a new one if its host joins by itself), or why
  // it is refused.
  std::function<Result<KeyOwner>(const wire::Hello&, const KeyOwner&)> admit;
  std::function<void(HostId, const wire::Hello&, const std::string& peer)> agent_up;
  // worker 0: a report of the agent itself (wire::agent::FromAgent); otherwise a message of that
  // worker (wire::FromWorker).
  std::function<void(HostId, WorkerId, std::string_view payload)> agent_frame;
  // The connection to a host that was up is lost. agent_back may follow, or another agent_up after
  // retire() or drop().
  std::function<void(HostId, const std::string& reason)> agent_away;
  // The agent has dialled again, and no counted frame is lost.
  std::function<void(HostId)> agent_back;
  // The agent's watchdog reports that the agent is dead.
  std::function<void(HostId, const std::string& reason)> agent_dead;
  // A connection was refused; `count` is the number of refusals so far.
  std::function<void(std::uint64_t count, const std::string& why)> rejected;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& io, ServerOptions options,
                                                ServerHandlers handlers);
  ~Server();  // stops listening and breaks connections; what close() has begun is still flushed
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  // A message to a host that is away waits until it is back. For a host that is not up, nothing
  // happens.
  void send(HostId host, WorkerId worker, std::string_view payload);
  // Sends one message to several workers of this host.
  void send_message(HostId host, const std::vector<WorkerId>& workers, std::string_view message);
  // Sends to the agent itself, with the number of frames received from it filled in. Lost where
  // there is no connection.
  void send_heartbeat(HostId host, wire::agent::Heartbeat heartbeat);
  // The agent reports that it has received `count` of our frames.
  void acknowledged(HostId host, std::uint64_t count);
  // Sends to the agent itself, whenever none of the above is waiting.
  void send_bulk(HostId host, std::string_view payload);
  void send_to_all(std::string_view payload);
  // The host's agent is known to have ended. Frames it had sent are still delivered; agent_away is
  // not called when its connection ends.
  void retire(HostId host);
  // Cuts off a host that is given up; nothing more is received from it.
  void drop(HostId host);
  // Stops listening and closes each host.
  void close();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elasticrun::rendezvous::server
