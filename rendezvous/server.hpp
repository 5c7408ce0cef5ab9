// The socket of the rendezvous: agents dial it, greet, and are known by their host from then on.
//
// A thin driver. It decides nothing but what needs no memory of the job: who does not speak our
// protocol, version and job is a stranger, so is a host that claims to be another one than its key
// says, and a host that is connected is not connected twice (the first one is the one that has our
// workers; a second is a mistake or a copy). All else goes up as a call.
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
#include "rendezvous/host_keys.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

struct ServerOptions {
  std::string address = "0.0.0.0";  // numeric; "::" hears both families
  std::uint16_t port = 0;           // 0: the system chooses
  wire::Welcome welcome;            // agents must have the same protocol and version
  HostKeys keys;                    // of the job
  bool hosts_may_join = false;      // the join key opens the door
  net::TcpOptions tcp;
  Duration greeting_time = net::greeting_time_default;
};

// Called on the io_context's thread, never inside a call of the server. They may call it, but not
// destroy it.
struct ServerHandlers {
  // Whether the job has a host of that number. The key of any other one opens nothing.
  std::function<bool(HostId)> knows;
  // The number of the host that greets, a new one where it joins by itself; or why it is refused.
  std::function<Result<HostId>(const wire::Hello&)> admit;
  std::function<void(HostId, const wire::Hello&, const std::string& peer)> agent_up;
  // worker 0: a report of the agent itself (wire::FromAgent); else a letter (wire::FromWorker).
  std::function<void(HostId, WorkerId, std::string_view payload)> agent_frame;
  // Once for each agent_up, unless the server is destroyed first. The host may dial again.
  std::function<void(HostId, const std::string& reason)> agent_down;
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
  bool is_up(HostId host) const;
  // To a host that is not up: nothing happens, its agent_down has been or is about to be called.
  void send(HostId host, WorkerId worker, std::string_view payload);
  // To the agent itself, when nothing of the above waits.
  void send_bulk(HostId host, std::string_view payload);
  void send_to_all(std::string_view payload);
  // Flushes what was sent to that host, then closes; agent_down follows.
  void close(HostId host);
  // Cuts a host off that is given up; nothing more comes of it, not even agent_down.
  void drop(HostId host);
  // Stops listening and closes each host.
  void close();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elasticrun::rendezvous
