// Records what the training thread has done since the last sample, and what it is doing now.
//
// Why a lock and not atomics: taken a few times a step it costs some 20 ns each, and all values of
// a sample are then of the same moment.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace elasticrun::worker::control {

// The clock of steps.
inline Time now() { return std::chrono::steady_clock::now(); }

class StepMeter {
 public:
  // Bytes of the state received, sent, written or read by this process so far.
  std::atomic<std::uint64_t> transferred{0};

  enum class Phase { idle, compute, reduce, apply, epoch, transfer, save };

  struct StepCost {
    std::int64_t samples = 0;  // number of samples of this worker
    Duration wall{}, compute{}, reduce{};
    std::optional<Noise> noise;  // the estimate after this step, on the rank that reports it
  };

  void enter(Phase phase, Time now) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    since_ = now;
  }
  void committed(const StepCost& cost, Time now) {
    const std::lock_guard lock(mutex_);
    ++sums_.steps;
    sums_.samples += cost.samples;
    sums_.wall_ns += cost.wall.count();
    sums_.compute_ns += cost.compute.count();
    sums_.reduce_ns += cost.reduce.count();
    if (cost.noise) sums_.noise.assign(1, *cost.noise);
    phase_ = Phase::idle;
    since_ = now;
  }
  // A sample without its generation and step; the sums begin again at 0. `interval`: the usual time
  // between two samples. A pause of more than intervals_max of them shows that this process was
  // stopped: it does not count as time in the phase.
  wire::Sample take(Time now, Duration interval) {
    static constexpr const char* names[] = {"idle",  "compute",  "reduce", "apply",
                                            "epoch", "transfer", "save"};
    const std::lock_guard lock(mutex_);
    const Duration pause = now - std::exchange(taken_, now);
    if (pause > std::max<Duration>(intervals_max * interval, standstill_min))
      since_ = std::min(now, since_ + pause);
    wire::Sample sample = std::exchange(sums_, {});
    sample.waiting_ns = (now - since_).count();
    sample.phase = names[static_cast<int>(phase_)];
    sample.transfer_bytes = transferred;
    return sample;
  }

 private:
  static constexpr int intervals_max = 8;
  static constexpr Duration standstill_min = std::chrono::seconds(1);  // shorter: a busy machine

  std::mutex mutex_;
  wire::Sample sums_;
  Phase phase_ = Phase::idle;
  Time since_ = control::now();
  Time taken_ = since_;
};

}  // namespace elasticrun::worker::control
