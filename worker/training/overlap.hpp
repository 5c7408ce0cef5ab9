// Reduces buckets on a thread of its own while the program computes (a driver; buckets.hpp decides
// which). The group is used by this thread from start() to the return of finish() or cancel(), and
// by nobody else.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "worker/core/buckets.hpp"
#include "worker/training/work_queue.hpp"

namespace elasticrun::worker::training {

class Overlap {
 public:
  // `reduce` is called with the number of a bucket, on the thread; it may throw. `on_ready`, unless
  // it is empty, is called with the number of a gradient, on any thread, before its bucket may
  // start.
  Overlap(std::function<void(std::size_t)> reduce, std::function<void(std::size_t)> on_ready);
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  // Outside begin() to finish(): there are these buckets, of that many gradients.
  void cut(std::span<const core::Bucket> buckets, std::size_t gradients);
  // A piece of a step begins, and nothing is ready; `step` tells it from others.
  void begin(const void* step);
  // From now on what is ready is reduced.
  void start();
  // Any thread: a gradient is final in the piece of that step; `is_set`: it is not zero because
  // nobody has set it. Nothing happens for a step that is over. False: there is no such gradient.
  bool ready(const void* step, std::size_t gradient, bool is_set);
  // Whether nobody has reported that it is not; the same of all of them.
  bool is_set(std::size_t gradient) const;
  bool all_set() const { return !any_unset_; }
  // What is not ready counts as ready. Waits until all buckets are reduced, if start() was called;
  // throws what the thread threw.
  void finish();
  // Waits until the thread reduces nothing; the group was aborted before.
  void cancel();
  // After start(), until finish() or cancel().
  bool active() const;

 private:
  void push_startable();  // with the lock
  void end();             // the same

  const std::function<void(std::size_t)> reduce_, on_ready_;
  mutable std::mutex mutex_;
  core::ReadyMarks marks_;
  std::vector<char> unset_;  // gradients that nobody has set in this piece
  std::atomic<bool> any_unset_{false};
  bool started_ = false;  // since start()
  WorkQueue queue_{"er-buckets"};
};

}  // namespace elasticrun::worker::training
