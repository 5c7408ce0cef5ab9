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
  // From now on INT and TERM do not end this program, even after this object is destroyed. For a
  // job that such a signal has ended: its last lines are still to be written, within a second.
  static void hold();

 private:
  void wait();

  boost::asio::signal_set set_;
  Heard heard_;
};

}  // namespace elasticrun::job::driver
