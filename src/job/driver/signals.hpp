// The signals by which users and batch systems control the job (a driver).
#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>

namespace elasticrun::job::driver {

class Signals {
 public:
  // INT, TERM, HUP, TSTP, USR1 or USR2.
  using Heard = std::function<void(int signal)>;
  Signals(boost::asio::io_context& io, Heard heard);

  // From now on these signals do not end this program, and neither does writing to a pipe without
  // a reader (SIGPIPE).
  void start();

 private:
  void wait();

  boost::asio::signal_set set_;
  Heard heard_;
};

}  // namespace elasticrun::job::driver
