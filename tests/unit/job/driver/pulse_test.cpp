// The pulse reports for how long the program stood still.
#include "job/driver/pulse.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

#include "base/boot_clock.hpp"

using namespace elasticrun;
using namespace std::chrono_literals;

TEST_CASE("a stopped pulse reports no pause") {
  boost::asio::io_context io;
  job::driver::Pulse pulse(io, [] {});
  pulse.start();
  const Time now = boot_now();
  CHECK(pulse.pause(now + 2s) >= 1s);
  CHECK(pulse.pause(now + 2100ms) == Duration::zero());
  pulse.stop();
  CHECK(pulse.pause(now + 5s) == Duration::zero());
}
