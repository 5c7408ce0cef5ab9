// Learns that this host will soon go away (a driver): a spot instance that is taken back, a batch
// job that reaches its time limit, a machine that is to be rebooted.
//
// Who knows that differs from place to place, so it is either told to the agent by a signal
// (SIGUSR2), or found out by a command of the user, which runs here again and again and ends with 0
// when the host will go. The command may also wait for that.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <string>

#include "launcher/executors/hook_process.hpp"

namespace elasticrun::launcher::agent {

class Notice {
 public:
  using Heard = std::function<void(const std::string& reason)>;
  // A signal that comes before watch() is kept for it.
  explicit Notice(boost::asio::io_context& io);
  // Calls `heard` at most once, and never inside of this. An empty command: only a signal counts.
  void watch(const std::string& command, Heard heard);
  // The process of the command, as it runs now; 0: it does not.
  int pid() const { return command_ ? command_->pid() : 0; }

 private:
  void give(const std::string& reason);
  void ask();
  void ask_again_later();

  boost::asio::io_context& io_;
  boost::asio::signal_set signal_;
  boost::asio::steady_timer timer_;
  std::optional<executors::HookProcess> command_;
  Heard heard_;           // empty before watch(), and once it has been called
  std::string reason_;    // empty: no notice yet
  bool refused_ = false;  // the command cannot be run, and that was logged
};

}  // namespace elasticrun::launcher::agent
