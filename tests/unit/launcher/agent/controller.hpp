// A minimal controller as the other end of a real agent in tests: it starts an agent on this
// machine, sends the orders that the test gives, and records what comes back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "launcher/executors/local_executor.hpp"
#include "net/listener.hpp"
#include "net/session.hpp"
#include "net/sockets.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent {

using namespace std::chrono_literals;

struct WorkerView {
  int pid = 0;  // 0: has not started
  bool failed = false;
  bool dies = false;
  bool exited = false;
  int code = 0;
  int signal = 0;
  std::string reason;  // of a failure
  std::string out;
  std::string err;
};

class Controller {
 public:
  // Starts the agent and waits until it has greeted (unless `up` is false).
  explicit Controller(
      const std::function<void(executors::AgentStart&)>& change = [](executors::AgentStart&) {},
      bool up = true);
  ~Controller();

  // Runs until the condition holds; false when it still does not hold after 20 s.
  bool until(const std::function<bool()>& condition);
  void send(const wire::agent::ToAgent& order);
  void start(std::uint32_t worker, std::vector<std::string> argv, std::string cwd = "/");
  // Starts `sh -c script`.
  void shell(std::uint32_t worker, const std::string& script);
  // Waits until the worker has exited or failed, and has printed this text.
  WorkerView& finished(std::uint32_t worker, const std::string& text = {});
  // The process whose id is the first line of the worker's output.
  net::Fd process_named_by(std::uint32_t worker);
  // Waits until the agent has said it: the worker may have written before.
  int pid_of(std::uint32_t worker);
  static net::Fd process(int pid);
  bool agent_ended() {
    return until([this] { return !exit_reason.empty(); });
  }
  // The directory of the agent's socket.
  std::filesystem::path agents_directory() const;
  // Whether no agent has left anything in the directory where agents keep their sockets.
  bool directory_is_empty() const;
  void remove_what_is_left();
  void stop_listening() { listener_.reset(); }

  boost::asio::io_context io{1};
  std::map<std::uint32_t, WorkerView> workers;
  std::vector<std::string> messages;  // "worker: text"
  std::vector<wire::agent::BundleWanted> wanted;
  std::string exit_reason;     // of the agent, empty while it runs
  std::string agent_lines;     // its standard error
  int agent_pid = 0;           // of the agent itself, not its watchdog
  Duration up_after{};         // from the start of the program to its greeting
  Duration longest_silence{};  // between two heartbeats
  bool beating = true;         // whether the controller sends heartbeats
  int heartbeats = 0;          // received over the present connection
  int resumed = 0;             // number of times the agent has dialled again
  std::string refuse;          // the reason with which a redial is refused; empty: it is accepted
  std::unique_ptr<net::Session> agent;
  std::unique_ptr<executors::LocalExecutor> executor;

 private:
  void frame(WorkerId worker, std::string_view payload);
  void take(const wire::agent::FromAgent& message);
  void hung_up();

  std::string directory_;
  std::unique_ptr<net::Listener> listener_;
  std::uint64_t received_ = 0;  // frames received over earlier connections
  Time last_heartbeat_{};
};

// The process's parent, which is one of ours.
int parent_of(int pid);
// Sends a signal to one process. Numbers below 1 mean more than one, among them this test's own.
void signal_one(int pid, int number);
// Whether another process holds the lock against cleaners.
bool is_locked(const std::filesystem::path& directory);
// Whether the process has ended, or ends within 10 s.
bool gone(const net::Fd& process);

}  // namespace elasticrun::launcher::agent
