// Reduces buckets on a thread of its own while the program computes (a driver; buckets.hpp decides
// which). The group is used by this thread from begin() to the return of finish() or cancel(), and
// by nobody else.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "worker/training/buckets.hpp"

namespace elasticrun::worker::training {

class Overlap {
 public:
  // `reduce` is called with the number of a bucket, on the thread; it may throw.
  Overlap(std::span<const Bucket> buckets, std::size_t gradients,
          std::function<void(std::size_t)> reduce);
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  // A step begins; `step` tells it from others.
  void begin(const void* step);
  // Any thread: a gradient of that step is final; nothing happens for a step that is over. False:
  // there is no such gradient.
  bool ready(const void* step, std::size_t gradient);
  // What is not ready counts as ready. Waits until all buckets are reduced; throws what the thread
  // threw.
  void finish();
  // Waits until the thread reduces nothing; the group was aborted before.
  void cancel();
  // Between begin() and the return of finish() or cancel().
  bool active() const;

 private:
  void run();

  const std::function<void(std::size_t)> reduce_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ReadyMarks marks_;
  const void* step_ = nullptr;  // null: no step is under way
  bool reducing_ = false;       // the thread is inside reduce_
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // from the first begin() on
};

}  // namespace elasticrun::worker::training
