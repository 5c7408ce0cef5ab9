// What reduces the buckets of a simulated process while its program computes: a real process has a
// thread for it (worker/training/overlap.hpp). The cut, and which bucket starts, are decided by the
// real code.
//
// What is really ready is noted here a second time, so that a mistake of that code is seen.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "simulate/faults/plane.hpp"
#include "simulate/faults/scene.hpp"
#include "worker/core/buckets.hpp"

namespace elasticrun::simulate::faults {

class BucketThread {
 public:
  struct Start {
    const worker::core::Bucket& bucket;
    bool whole = false;  // all of its gradients are ready
    bool late = false;   // it starts because of a gradient of a step that is over
  };
  // Begins to reduce a bucket; ended() follows, later.
  using Reduce = std::function<void(const Start&)>;
  BucketThread(const Scene& scene, Reduce reduce);

  std::size_t gradients() const { return ready_.size(); }
  std::size_t buckets() const { return buckets_.size(); }
  // A step begins; the result tells it from the seven steps before it.
  const void* begin();
  // A gradient of that step is ready.
  void ready(const void* step, std::size_t gradient);
  // Compute has ended. `done` gets sums when all buckets are reduced, and none when one broke.
  void finish(Plane::Done done);
  void ended(const Plane::Ended& how);

 private:
  BucketThread(std::vector<worker::core::Gradient> gradients, Reduce reduce);
  void go_on(bool late = false);

  const std::vector<worker::core::Bucket> buckets_;
  Reduce reduce_;
  worker::core::ReadyMarks marks_;
  std::array<char, 8> steps_{};  // as many as in a real process: their addresses serve in turn
  std::size_t turn_ = 0;
  const void* step_ = nullptr;  // null: no step is under way
  std::vector<char> ready_;     // the gradients that are
  bool reducing_ = false;
  std::optional<Plane::Ended> broken_;  // how a bucket of this step broke
  Plane::Done done_;                    // from finish() on
};

}  // namespace elasticrun::simulate::faults
