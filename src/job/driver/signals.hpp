// The signals by which people and batch systems speak to the job (a driver).
#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>

namespace elasticrun::job::driver {

class Signals {
 public:
  // INT, TERM, HUP, TSTP, USR1 or USR2.
  using Heard = std::function<void(int signal)>;
  Signals(boost::asio::io_context& io, Heard heard);

  // From now on they do not end this program; neither does a pipe that nobody reads.
  void start();

 private:
  void wait();

  boost::asio::signal_set set_;
  Heard heard_;
};

}  // namespace elasticrun::job::driver
