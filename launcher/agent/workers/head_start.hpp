// Gives the other ranks of a restarted program the lead that they need (lead.hpp), from how long
// rank 0 took to listen in the run before (a driver).
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "base/time.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::agent::workers {

class HeadStart {
 public:
  explicit HeadStart(boost::asio::io_context& io) : timer_(io) {}

  // A worker begins: sets how much later than asked for, if that is known, and if it is rank 0
  // measures how long it takes until it listens at MASTER_PORT.
  void begins(wire::agent::StartWorker& order);

 private:
  void look_later();

  boost::asio::steady_timer timer_;
  std::uint16_t port_ = 0;
  Time began_{};
  Duration interval_{};
  std::optional<Duration> took_;  // from the start of rank 0 until it listened
};

}  // namespace elasticrun::launcher::agent::workers
