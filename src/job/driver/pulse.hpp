// Notices that this whole program did not run: a person has stopped it, its machine was suspended
// or moved. Nobody may be blamed for what was not heard meanwhile. A driver.
//
// A timer runs when nothing else does, so that a longer pause between two events is one of the
// program. The clock is one that counts suspended time.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "base/time.hpp"

namespace elasticrun::job::driver {

class Pulse {
 public:
  // `late` is called when the timer is the first to run after a pause.
  Pulse(boost::asio::io_context& io, std::function<void()> late);

  void start();
  void stop();
  // Before each event: for how long the program stood still; zero: it did not, or the pulse is
  // stopped, so that a pause between two events says nothing.
  Duration pause(Time now);

 private:
  void wait();

  boost::asio::steady_timer timer_;
  const std::function<void()> late_;
  Time last_run_;
  bool stopped_ = false;
};

}  // namespace elasticrun::job::driver
