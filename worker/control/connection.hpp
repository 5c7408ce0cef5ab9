// The connection to the agent of this host, on a thread of its own: the control thread.
//
// The training thread may compute for minutes; meanwhile messages of the controller must be
// received and answered, and samples sent, which show that the worker is alive. No Asio type shows
// here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::worker::control {

struct ConnectionOptions {
  std::string path;  // path of the agent's Unix socket
  std::string job;
  WorkerId worker;
  std::string version;  // version of this library
  Duration sample_interval = std::chrono::milliseconds(500);
};

// Called on the control thread.
struct ConnectionHandlers {
  std::function<void(const wire::ToWorker&)> on_message;
  std::function<void(const std::string& reason)> on_lost;  // at most once, not after destruction
  std::function<std::optional<wire::Sample>()> sample;  // once an interval; nullopt: none is sent
};

class Connection {
 public:
  // Connects, greets and joins; blocks until the agent has answered, 5 s at most.
  static Result<std::unique_ptr<Connection>> open(const ConnectionOptions& options,
                                                  ConnectionHandlers handlers);
  // Messages already given to send() still go out, within 2 s.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(wire::FromWorker message);  // any thread
  // Any thread but the control thread: returns when the messages sent have been written, the
  // connection is lost, or 2 s have passed.
  void flush();

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elasticrun::worker::control
