// Keeps workers from printing while whoever reads our own output is behind (a driver).
//
// Without it their lines would pile up here: a reader such as less(1) may stop for an hour.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>

namespace elasticrun::job::driver {

class OutputHold {
 public:
  struct Handlers {
    std::function<bool()> wanted;          // whether the reader is behind
    std::function<void(bool hold)> order;  // to the agents, when that has changed
  };
  OutputHold(boost::asio::io_context& io, Handlers handlers);

  // After each output; while it holds, it looks again by itself.
  void look();

 private:
  void look_again();

  boost::asio::steady_timer timer_;
  Handlers handlers_;
  bool holding_ = false;
};

}  // namespace elasticrun::job::driver
