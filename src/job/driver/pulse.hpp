// Notices that this whole program did not run for a while: the user has stopped it, or its machine
// was suspended or moved. No host may be blamed for being silent during that time. A driver.
//
// A timer fires even when nothing else happens, so a longer pause between two events means that the
// program itself stood still. The clock used here also counts the time of a suspended machine.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>

#include "base/time.hpp"

namespace elasticrun::job::driver {

class Pulse {
 public:
  // `late` is called when the timer's event is the first after a pause.
  Pulse(boost::asio::io_context& io, std::function<void()> late);

  void start();
  void stop();
  // To be called before each event. Returns for how long the program stood still; zero when it did
  // not, and after stop(), when a pause between two events means nothing.
  Duration pause(Time now);

 private:
  void wait();

  boost::asio::steady_timer timer_;
  const std::function<void()> late_;
  Time last_run_;
  bool stopped_ = false;
};

}  // namespace elasticrun::job::driver
