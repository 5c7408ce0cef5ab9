// A device that is not there: --device-ms and --slow.
//
// It sleeps and does not spin, so that sixteen workers on two cores scale as sixteen devices would.
// Slowness belongs to a process, as it does to a bad machine: whoever replaces it, or has its rank
// later, is not slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "options.hpp"

namespace fashion {

class PretendDevice {
 public:
  explicit PretendDevice(const Options& options)
      : per_sample_(options.device_ms), slow_(options.slow) {}

  // At the end of compute, which began at `begin`.
  void pass_time(std::chrono::steady_clock::time_point begin, std::size_t samples, int rank,
                 std::int64_t step) {
    if (first_step_ < 0) first_step_ = step;
    if (slow_ && !decided_ && step >= slow_->from_step) {
      decided_ = true;
      is_slow_ = rank == slow_->rank && first_step_ <= slow_->from_step;
    }
    std::this_thread::sleep_for(per_sample_ * static_cast<double>(samples));
    if (!is_slow_) return;
    const auto took = std::chrono::steady_clock::now() - begin;
    std::this_thread::sleep_for(took * (slow_->factor - 1));
  }

 private:
  std::chrono::duration<double, std::milli> per_sample_;
  std::optional<Slow> slow_;
  std::int64_t first_step_ = -1;
  bool decided_ = false;
  bool is_slow_ = false;
};

}  // namespace fashion
