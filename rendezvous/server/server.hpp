// The socket of the rendezvous: agents dial it, greet, and are known by their host from then on.
//
// A thin driver. It decides nothing but what needs no memory of the job: who does not speak our
// protocol, version and job is a stranger, so is a host that claims to be another one than its key
// says, and a host that is connected is not connected twice (the first one is the one that has our
// workers; a second is a mistake or a copy). A connection that is lost may be resumed by the same
// agent until its host is dropped. All else goes up as a call.
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
#include "wire/messages.hpp"

namespace elasticrun::rendezvous::server {

struct ServerOptions {
  std::string address = "0.0.0.0";  // numeric; "::" hears both families
  std::uint16_t port = 0;           // 0: the system chooses
  std::uint16_t port_last = 0;      // the first free one from `port` on; 0: `port` or none
  wire::Welcome welcome;            // agents must have the same protocol and version
  HostKeys keys;                    // of the job
  bool hosts_may_join = false;      // the join key opens the door
  net::TcpOptions tcp;
  Duration greeting_time = net::greeting_time_default;
};

// Called on the io_context's thread, never inside a call of the server. They may call it, but not
// destroy it.
struct ServerHandlers {
  // Whether the job has started, or admitted, an agent with that key. Any other one opens nothing.
  std::function<bool(const KeyOwner&)> knows;
  // Who the agent is that greets, a new one where its host joins by itself; or why it is refused.
  std::function<Result<KeyOwner>(const wire::Hello&, const KeyOwner&)> admit;
  std::function<void(HostId, const wire::Hello&, const std::string& peer)> agent_up;
  // worker 0: a report of the agent itself (wire::FromAgent); else a message (wire::FromWorker).
  std::function<void(HostId, WorkerId, std::string_view payload)> agent_frame;
  // The connection of a host that is up is lost; agent_back may follow, or another agent_up after
  // retire() or drop().
  std::function<void(HostId, const std::string& reason)> agent_away;
  // It has dialled again: nothing that was sent is lost.
  std::function<void(HostId)> agent_back;
  // Its watchdog says that it is dead.
  std::function<void(HostId, const std::string& reason)> agent_dead;
  // Who knocked and did not get in; `count` is their number so far.
  std::function<void(std::uint64_t count, const std::string& why)> stranger;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& io, ServerOptions options,
                                                ServerHandlers handlers);
  ~Server();  // stops listening; connections break, except that close has flushed
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  // What is sent to a host that is away waits for it; to one that is not up: nothing happens.
  void send(HostId host, WorkerId worker, std::string_view payload);
  // One message for workers of that host.
  void send_message(HostId host, const std::vector<WorkerId>& workers, std::string_view message);
  // To the agent itself, with how much of it was received; lost where there is no connection.
  void send_heartbeat(HostId host, wire::Heartbeat heartbeat);
  // The agent has received so many of our frames.
  void acknowledged(HostId host, std::uint64_t count);
  // To the agent itself, when nothing of the above waits.
  void send_bulk(HostId host, std::string_view payload);
  void send_to_all(std::string_view payload);
  // Its agent is known to have ended: what it had sent still comes, and nothing else is called.
  void retire(HostId host);
  // Cuts a host off that is given up; nothing more comes of it.
  void drop(HostId host);
  // Stops listening and closes each host.
  void close();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elasticrun::rendezvous::server
