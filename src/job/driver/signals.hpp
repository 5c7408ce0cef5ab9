// The signals by which users and batch systems control the job (a driver).
#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>

namespace elasticrun::job::driver {

class Signals {
 public:
  // INT, TERM, HUP, TSTP, USR1, USR2 or the signal that was added.
  using Heard = std::function<void(int signal)>;
  Signals(boost::asio::io_context& io, Heard heard);

  // From now on these signals do not end this program, and neither does writing to a pipe without
  // a reader (SIGPIPE). `added`: a further signal; 0: none.
  void start(int added);
  // INT and TERM end this program no more, even when this object is gone: a user has asked for the
  // end, and the last lines of the job are written within a second.
  static void hold();

 private:
  void wait();

  boost::asio::signal_set set_;
  Heard heard_;
};

}  // namespace elasticrun::job::driver
