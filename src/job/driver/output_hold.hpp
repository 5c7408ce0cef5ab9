// Keeps workers from printing while the reader of our own output is behind (a driver).
//
// Without this, their lines would pile up here: a reader such as less(1) may pause for an hour.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>

namespace elasticrun::job::driver {

class OutputHold {
 public:
  struct Handlers {
    std::function<bool()> wanted;          // whether the reader is behind
    std::function<void(bool hold)> order;  // sent to the agents when `wanted` has changed
  };
  OutputHold(boost::asio::io_context& io, Handlers handlers);

  // To be called after each output. While output is held, a timer repeats the check.
  void look();
  // To be called when an agent has connected: it is told that output is held, if it is.
  void host_joined();

 private:
  void look_again();

  boost::asio::steady_timer timer_;
  Handlers handlers_;
  bool holding_ = false;
};

}  // namespace elasticrun::job::driver
