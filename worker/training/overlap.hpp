// Reduces buckets on a thread of its own while the program computes (a driver; buckets.hpp decides
// which): all but the last one, with which nothing is left to compute, so that it goes together
// with what is reduced after compute. The group is used by this thread from start() to the return
// of finish() or cancel(), and by nobody else.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "worker/core/buckets.hpp"
#include "worker/training/work_queue.hpp"

namespace elasticrun::worker::training {

class Overlap {
 public:
  // What a gradient is in a piece: null data: it is in its own place.
  struct Value {
    const void* data = nullptr;
    bool is_set = true;  // false: it is zero, for nobody has set it
  };

  // `reduce` is called on the thread when buckets wait for it, and reduces those that
  // next_waiting() gives until it gives none; it may throw. `on_ready`, unless it is empty, is
  // called with the number of a gradient, on any thread, before its bucket may start.
  Overlap(std::function<void()> reduce, std::function<void(std::size_t)> on_ready);
  ~Overlap();
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  // Outside begin() to finish(): there are these buckets, of that many gradients.
  void cut(std::span<const core::Bucket> buckets, std::size_t gradients);
  // A piece of a step begins, and nothing is ready; `step` tells it from others.
  void begin(const void* step);
  // From now on what is ready is reduced.
  void start();
  // Any thread: gradients are final in the piece of that step. `data`, unless it is empty: where
  // each of them is, null: in its own place. Nothing happens for a step that is over, or closed.
  // False: there is no such gradient.
  bool ready(const void* step, std::span<const std::size_t> gradients,
             std::span<const void* const> data = {});
  // The same for one that nobody has set.
  bool unset(const void* step, std::size_t gradient);
  // The piece was computed: what is not ready counts as ready.
  void close();
  // After close(), or while the gradient's bucket is reduced.
  const Value& value_of(std::size_t gradient) const { return values_[gradient]; }
  // On the thread: the number of the next bucket to reduce.
  std::optional<std::size_t> next_waiting();
  // Closes, and waits until the thread has reduced its buckets, if start() was called; throws what
  // it threw.
  void finish();
  // Waits until the thread reduces nothing; the group was aborted before.
  void cancel();
  // After start(), until finish() or cancel().
  bool active() const;

 private:
  void reduce_waiting();  // on the thread
  // With the lock:
  bool report(const void* step, std::size_t gradient, const Value& value);
  void push_startable();

  const std::function<void()> reduce_;
  const std::function<void(std::size_t)> on_ready_;
  mutable std::mutex mutex_;
  core::ReadyMarks marks_;
  std::vector<Value> values_;          // of each gradient, in this piece
  bool started_ = false;               // since start()
  std::deque<std::size_t> startable_;  // buckets that the thread has not taken
  WorkQueue queue_{"er-buckets"};
};

}  // namespace elasticrun::worker::training
