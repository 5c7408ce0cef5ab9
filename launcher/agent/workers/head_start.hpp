// How much later than rank 0 the other ranks of a restarted program begin (a driver).
//
// What rank 0 opens first, the others dial first, and PyTorch waits for a second when it finds
// nobody there. All of them load the same things until then, in about the same time; so they need a
// lead that grows with that time, which is taken from the run before.
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
