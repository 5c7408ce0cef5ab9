// See output_hold.hpp.
#include "job/driver/output_hold.hpp"

#include <boost/asio/io_context.hpp>
#include <utility>

#include "base/time.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr Duration hold_interval = std::chrono::milliseconds(5);

}  // namespace

OutputHold::OutputHold(boost::asio::io_context& io, Handlers handlers)
    : timer_(io), handlers_(std::move(handlers)) {}

void OutputHold::look() {
  if (!holding_) look_again();
}

void OutputHold::host_joined() {
  if (holding_) handlers_.order(true);
}

void OutputHold::look_again() {
  const bool hold = handlers_.wanted();
  if (std::exchange(holding_, hold) != hold) handlers_.order(hold);
  if (!hold) return;
  timer_.expires_after(hold_interval);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) look_again();
  });
}

}  // namespace elasticrun::job::driver
