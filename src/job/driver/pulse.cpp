// See pulse.hpp.
#include "job/driver/pulse.hpp"

#include <utility>

#include "base/boot_clock.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration interval = std::chrono::milliseconds(500);

}  // namespace

Pulse::Pulse(boost::asio::io_context& io, std::function<void()> late)
    : timer_(io), late_(std::move(late)), last_run_(boot_now()) {}

void Pulse::start() {
  last_run_ = boot_now();
  wait();
}

void Pulse::wait() {
  timer_.expires_after(interval);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (stopped) return;
    const Time now = boot_now();
    wait();
    if (now - last_run_ > 2 * interval) return late_();
    last_run_ = now;
  });
}

void Pulse::stop() {
  timer_.cancel();
  stopped_ = true;
}

Duration Pulse::pause(Time now) {
  if (stopped_) return Duration::zero();
  const Duration pause = now - std::exchange(last_run_, now);
  return pause > 2 * interval ? pause : Duration::zero();
}

}  // namespace elasticrun::job::driver
