// When an agent that has lost its connection dials again, and when it takes its controller for
// gone.
//
// The lease decides how long the workers live without news, not the connection. But a controller
// that has been killed will never be heard again, and its workers should not burn an hour of GPU
// time for the rest of a lease: when its port is closed, and stays closed for a moment, nobody is
// there any more. A port that does not answer at all says nothing; then the lease runs out. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.hpp"

namespace elasticrun::launcher {

class Redial {
 public:
  static constexpr Duration closed_for_good = std::chrono::milliseconds(500);

  void lost(Time now) {
    lost_at_ = dial_at_ = now;
    pause_ = pause_min;
  }
  // An attempt is under way from now on; failed() or connected() follows.
  void dialled() { dial_at_ = never; }
  void connected() { lost_at_ = dial_at_ = never; }
  // `port_closed`: the machine is there, and nobody listens.
  void failed(bool port_closed, Time now) {
    controller_gone_ = port_closed && now >= lost_at_ + closed_for_good;
    dial_at_ = controller_gone_ ? never : now + pause_;
    pause_ = std::min(2 * pause_, pause_max);
  }

  // never: an attempt is under way, or none is needed.
  Time dial_at() const { return dial_at_; }
  bool controller_gone() const { return controller_gone_; }

 private:
  static constexpr Duration pause_min = std::chrono::milliseconds(20);
  static constexpr Duration pause_max = std::chrono::seconds(1);

  Time lost_at_ = never;
  Time dial_at_ = never;
  Duration pause_ = pause_min;
  bool controller_gone_ = false;
};

}  // namespace elasticrun::launcher
