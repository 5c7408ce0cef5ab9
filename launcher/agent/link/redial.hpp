// Decides when an agent that has lost its connection dials again, and when it considers its
// controller gone.
//
// The lease, not the connection, decides how long the workers live without news. But a controller
// that was killed never answers again, and its workers should not burn an hour of GPU time for the
// rest of a lease: if its port is closed and stays closed for a moment, the controller is gone. A
// port that does not answer at all proves nothing; then the lease runs out. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.hpp"

namespace elasticrun::launcher::agent::link {

class Redial {
 public:
  static constexpr Duration closed_for_good = std::chrono::milliseconds(500);

  void lost(Time now) {
    dial_at_ = now;
    refused_since_ = never;
    pause_ = pause_min;
    attempt_time_ = attempt_time_min;
  }
  // An attempt is under way from now on; failed() or connected() follows.
  void dialled() { dial_at_ = never; }
  void connected() { dial_at_ = never; }
  // `port_closed`: the machine answers, but nothing listens on the port.
  void failed(bool port_closed, Time now) {
    refused_since_ = port_closed ? std::min(refused_since_, now) : never;
    controller_gone_ = port_closed && now >= refused_since_ + closed_for_good;
    dial_at_ = controller_gone_ ? never : now + pause_;
    pause_ = std::min(2 * pause_, pause_max);
    attempt_time_ = std::min(2 * attempt_time_, attempt_time_max);
  }

  // When to dial; never: an attempt is under way, or none is needed.
  Time dial_at() const { return dial_at_; }
  // Timeout of the next attempt. Short at first: the first packet may be lost, and the system sends
  // it again only after a second.
  Duration attempt_time() const { return attempt_time_; }
  bool controller_gone() const { return controller_gone_; }

 private:
  static constexpr Duration pause_min = std::chrono::milliseconds(20);
  static constexpr Duration pause_max = std::chrono::seconds(1);
  static constexpr Duration attempt_time_min = std::chrono::milliseconds(200);
  static constexpr Duration attempt_time_max = std::chrono::seconds(5);

  Time dial_at_ = never;
  Time refused_since_ = never;  // every attempt since then was refused; never: the last was not
  Duration attempt_time_ = attempt_time_min;
  Duration pause_ = pause_min;
  bool controller_gone_ = false;
};

}  // namespace elasticrun::launcher::agent::link
